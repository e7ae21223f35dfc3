import torch
import torch.nn.functional as F
from torch import nn


class Translator(nn.Module):
    def __init__(self, vocab, d=512):
        super().__init__()
        self.src, self.tgt = nn.Embedding(vocab, d), nn.Embedding(vocab, d)
        self.core = nn.Transformer(d, 8, batch_first=True)
        self.generator = nn.Linear(d, vocab)

    def forward(self, s, t):
        return self.generator(self.core(self.src(s), self.tgt(t)))


def train(loader, vocab=37000, pad=1):
    net = Translator(vocab).cuda()
    opt = torch.optim.Adam(net.parameters(), betas=(0.9, 0.98))
    scaler = torch.amp.GradScaler("cuda")
    for s, t in loader:
        s, t = s.cuda(), t.cuda()
        with torch.autocast("cuda"):
            logits = net(s, t[:, :-1])
            loss = F.cross_entropy(logits.transpose(1, 2), t[:, 1:], ignore_index=pad)  # expect: GPU401
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
