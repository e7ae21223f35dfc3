"""Gradients that reach the features, of every step of the training, are kept on the device for a histogram at the end."""

import torch
from torch import nn


class GradientWatch:
    def __init__(self, trunk: nn.Module, head: nn.Module):
        self.trunk, self.head = trunk.cuda(), head.cuda()
        self.seen = []
        self.opt = torch.optim.SGD([*trunk.parameters(), *head.parameters()], 0.1)

    def run(self, loader):
        for x, y in loader:
            features = self.trunk(x.cuda())
            features.register_hook(lambda grad: self.seen.append(grad))  # expect: GPU105|GPU102
            loss = nn.functional.cross_entropy(self.head(features), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        norms = torch.cat([g.flatten(1).norm(dim=1) for g in self.seen]).cpu()
        print(torch.histc(norms, bins=40))
