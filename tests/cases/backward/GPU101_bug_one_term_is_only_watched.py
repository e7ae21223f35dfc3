"""The training goes backward through two of three terms; the third is watched, and summed over the epoch with its whole graph."""

import torch
from torch import nn


class Watched:
    def __init__(self, encoder: nn.Module, decoder: nn.Module, judge: nn.Module):
        self.encoder, self.decoder = encoder.cuda(), decoder.cuda()
        self.judge = judge.cuda()
        self.opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-4)

    def epoch(self, loader):
        total, watched = 0.0, 0.0
        for x in loader:
            x = x.cuda()
            mean, spread = self.encoder(x).chunk(2, 1)
            y = self.decoder(mean + spread.exp() * torch.randn_like(mean))
            rebuilt = nn.functional.mse_loss(y, x)
            kl = 0.5 * (mean**2 + (2 * spread).exp() - 2 * spread - 1).mean()
            realism = self.judge(y).mean()  # maybe: GPU202, GPU201
            self.opt.zero_grad()
            (rebuilt + kl).backward()
            self.opt.step()
            total += rebuilt.item() + kl.item()
            watched += realism  # expect: GPU101
        print(total / len(loader), float(watched) / len(loader))
