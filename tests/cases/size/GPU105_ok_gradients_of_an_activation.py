"""Of each gradient its norm is kept, a number."""

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
            features.register_hook(lambda grad: self.seen.append(grad.norm().item()))
            loss = nn.functional.cross_entropy(self.head(features), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        print(torch.histc(torch.tensor(self.seen), bins=40))
