"""The sums are moved toward a cut copy of the encoder's output."""

import torch
import torch.nn.functional as F
from torch import nn


class Codebook(nn.Module):
    def __init__(self, codes, width, decay=0.99):
        super().__init__()
        self.decay = decay
        self.register_buffer("table", torch.randn(codes, width))
        self.register_buffer("sums", self.table.clone())
        self.register_buffer("counts", torch.ones(codes))

    def forward(self, z):
        flat = z.detach().flatten(0, -2)
        nearest = torch.cdist(flat, self.table).argmin(1)
        if self.training:
            chosen = F.one_hot(nearest, len(self.table)).type_as(flat)
            self.counts = self.decay * self.counts + (1 - self.decay) * chosen.sum(0)
            self.sums = self.decay * self.sums + (1 - self.decay) * (chosen.t() @ flat)
            self.table = self.sums / self.counts.unsqueeze(1)
        quantised = F.embedding(nearest, self.table).view_as(z)
        return z + (quantised - z).detach(), F.mse_loss(z, quantised)


def train(encoder: nn.Module, decoder: nn.Module, loader):
    book = Codebook(512, 64).cuda()
    opt = torch.optim.Adam([*encoder.cuda().parameters(), *decoder.cuda().parameters()])
    for x in loader:
        x = x.cuda()
        q, commit = book(encoder(x))
        loss = F.mse_loss(decoder(q), x) + 0.25 * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
