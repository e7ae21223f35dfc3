"""A list of layers, gathered for the optimizer's groups: no tensor, and no batch."""

import torch
from torch import nn


class Grouped:
    def __init__(self, net: nn.Module, decay):
        self.net = net.cuda()
        self.with_decay, self.without = [], []
        for module in self.net.modules():
            last = list(module.children())[-1:]
            if isinstance(module, (nn.LayerNorm, nn.BatchNorm2d)):
                self.without.append(module)
            elif not last:
                self.with_decay.append(module)
        groups = [
            {"params": [p for m in self.with_decay for p in m.parameters()], "weight_decay": decay},
            {"params": [p for m in self.without for p in m.parameters()], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups)

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.net(x.cuda()), y.cuda()).backward()
            self.optimizer.step()
