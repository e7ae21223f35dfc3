"""Networks that some optimizer has: in a dict of parts, in a list of weights; or that are stepped by hand."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Reader(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.rnn = nn.LSTM(width, width)
        self.out = nn.Linear(width, out)

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.out(y)


def by_name(batches, n, m):
    enc, dec = nn.Linear(n, m).cuda(), nn.Linear(m, n).cuda()
    both = nn.ModuleDict({"enc": enc, "dec": dec})
    opt = optim.Adam(both.parameters())
    for x in batches:
        loss = F.mse_loss(dec(enc(x.cuda())), x.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


def extended(batches, n, m):
    enc, dec = Reader(n, m).cuda(), Reader(m, n).cuda()
    weights = list(enc.parameters())
    weights.extend(dec.parameters())
    opt = optim.Adam(weights)
    for x in batches:
        loss = F.mse_loss(dec(enc(x.cuda())), x.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


def by_hand(batches, n, m):
    enc, dec = Reader(n, m).cuda(), Reader(m, n).cuda()
    opt = optim.Adam(dec.parameters())
    for x in batches:
        loss = F.mse_loss(dec(enc(x.cuda())), x.cuda())
        enc.zero_grad()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for p in enc.parameters():
                p -= 0.1 * p.grad
