"""Of an ensemble the best weights are taken as lists of state dicts, which are the live weights under another name."""

import torch
from torch import nn


class Ensemble:
    def __init__(self, build, size):
        self.members = [build().cuda() for _ in range(size)]
        self.opt = torch.optim.Adam([p for m in self.members for p in m.parameters()])

    def error(self, loader):
        with torch.no_grad():
            return sum(
                nn.functional.mse_loss(torch.stack([m(x.cuda()) for m in self.members]).mean(0), y.cuda()).item()
                for x, y in loader
            )

    def fit(self, loader, held_out, epochs):
        best, best_error = None, float("inf")
        for _ in range(epochs):
            for x, y in loader:
                loss = sum(nn.functional.mse_loss(m(x.cuda()), y.cuda()) for m in self.members)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            error = self.error(held_out)
            if error < best_error:
                best_error = error
                best = [m.state_dict() for m in self.members]  # expect: GPU404
        for member, weights in zip(self.members, best):
            member.load_state_dict(weights)
