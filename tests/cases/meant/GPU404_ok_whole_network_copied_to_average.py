"""The copy of the network is the slow one that the targets come from."""

import copy

import torch
from torch import nn


class SelfDistilled:
    def __init__(self, net: nn.Module, lr):
        self._net = net.cuda()
        self._slow = copy.deepcopy(self._net).requires_grad_(False)
        self._opt = torch.optim.AdamW(self._net.parameters(), lr)

    def fit(self, loader, epochs):
        for _ in range(epochs):
            for one, two in loader:
                with torch.no_grad():
                    wanted = self._slow(two.cuda())
                self._opt.zero_grad()
                nn.functional.mse_loss(self._net(one.cuda()), wanted).backward()
                self._opt.step()
                with torch.no_grad():
                    for slow, fast in zip(self._slow.parameters(), self._net.parameters()):
                        slow.lerp_(fast, 0.01)
