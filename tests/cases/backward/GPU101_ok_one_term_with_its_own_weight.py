"""All three terms are summed into what goes backward, over the accumulation's micro-batches."""

import torch
from torch import nn


class Weighted:
    def __init__(self, encoder: nn.Module, decoder: nn.Module, judge: nn.Module):
        self.encoder, self.decoder = encoder.cuda(), decoder.cuda()
        self.judge = judge.cuda().requires_grad_(False)
        self.opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-4)

    def epoch(self, loader):
        total = 0.0
        for x in loader:
            x = x.cuda()
            mean, spread = self.encoder(x).chunk(2, 1)
            terms = 0.5 * (mean**2 + (2 * spread).exp() - 2 * spread - 1).mean()
            for _ in range(2):
                y = self.decoder(mean + spread.exp() * torch.randn_like(mean))
                terms += nn.functional.mse_loss(y, x)
                terms += 0.1 * self.judge(y).mean()
            self.opt.zero_grad()
            terms.backward()
            self.opt.step()
            total += terms.item()
        print(total / len(loader))
