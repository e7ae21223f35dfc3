import torch
import torch.nn as nn


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, 64)
        self.rnn = nn.GRU(64, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, h):
        y, h = self.rnn(self.emb(x), h)
        return self.out(y), h


def train(text_batches, vocab):
    model = CharRNN(vocab).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    crit = nn.CrossEntropyLoss()
    h = torch.zeros(1, 32, 256, device="cuda")
    for x, y in text_batches:
        out, h = model(x.cuda(), h)  # expect: GPU103
        loss = crit(out.transpose(1, 2), y.cuda())  # maybe: GPU401
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
        print(loss.item())
