import torch
from torch import nn

from tools import Balancer


class Solver:
    def __init__(self, net: nn.Module, optimizer):
        self.net, self.optimizer, self.balancer = net, optimizer, Balancer({"l1": 1.0})

    def step(self, x):
        y, penalty = self.net(x.cuda())
        losses = {"l1": (y - x.cuda()).abs().mean()}
        penalty = penalty.mean()
        penalty.backward(retain_graph=True)
        shown = self.balancer.backward(losses, y)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return shown

    def fit(self, loader):
        for x in loader:
            self.step(x)
