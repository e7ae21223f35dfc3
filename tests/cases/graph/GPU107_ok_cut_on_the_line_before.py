"""The slow weights are cut in place on the line before they take the fast ones in: one link, never a chain."""

import copy

import torch
from torch import nn


class Slow:
    def __init__(self, fast: nn.Module, rate=0.005):
        self.fast, self.rate = fast, rate
        self.slow = copy.deepcopy(fast)

    def follow(self):
        for target_param, param in zip(self.slow.parameters(), self.fast.parameters()):
            target_param.detach_()
            target_param.copy_(target_param * (1.0 - self.rate) + param * self.rate)


def train(net: nn.Module, loader):
    follower = Slow(net.cuda())
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for x, y in loader:
        with torch.no_grad():
            wanted = y.cuda() + 0.9 * follower.slow(x.cuda())
        loss = nn.functional.mse_loss(net(x.cuda()), wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
        follower.follow()
