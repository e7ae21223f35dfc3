import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB = 50257


class TinyGPT(nn.Module):
    def __init__(self, d=512, n_layer=4):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d)
        layer = nn.TransformerEncoderLayer(d, 8, 4 * d, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, n_layer)
        self.head = nn.Linear(d, VOCAB)

    def forward(self, ids):
        return self.head(self.blocks(self.tok(ids)))


def train(loader, steps):
    model = TinyGPT().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step, (x, y) in zip(range(steps), loader):
        logits = model(x.cuda())
        loss = F.cross_entropy(logits.view(-1, VOCAB), y.cuda().view(-1))  # expect: GPU401
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(step, loss.item())
