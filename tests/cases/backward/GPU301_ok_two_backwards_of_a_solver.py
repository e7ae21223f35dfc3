"""Both terms come from one forward of the shared part: the first backward must leave it, and the second does not."""

import torch
from torch import nn


class DomainSolver:
    def __init__(self, shared: nn.Module, tasks: nn.ModuleList):
        self.shared, self.tasks = shared.cuda(), tasks.cuda()
        self.opt = torch.optim.SGD([*shared.parameters(), *tasks.parameters()], 1e-2)

    def _term(self, k, codes, y):
        return nn.functional.cross_entropy(self.tasks[k](codes), y.cuda())

    def step(self, x, targets):
        self.opt.zero_grad()
        codes = self.shared(x.cuda())
        first = self._term(0, codes, targets[0])
        first.backward(retain_graph=True)
        norms = [p.grad.norm().item() for p in self.shared.parameters() if p.grad is not None]
        second = self._term(1, codes, targets[1])
        second.backward()
        self.opt.step()
        return first.item(), second.item(), max(norms)

    def fit(self, loader):
        for x, targets in loader:
            print(*self.step(x, targets))
