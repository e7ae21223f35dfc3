"""What a step in eval mode returns is differentiated, handed on, or kept by one of its callers."""

import torch
from torch import nn


class Attack:
    def __init__(self, net: nn.Module, criterion):
        self.net, self.criterion = net.cuda(), criterion

    def loss(self, x, y):
        self.net.eval()
        return self.criterion(self.net(x), y)  # low: GPU202

    def run(self, loader, log):
        for x, y in loader:
            log(self.loss(x.cuda(), y.cuda()).item())  # maybe: GPU201
        x = x.cuda().requires_grad_()
        self.loss(x, y.cuda()).backward()
        return x.grad


class Given:
    def __init__(self, net: nn.Module, criterion, listener):
        self.net, self.criterion, self.listener = net.cuda(), criterion, listener

    def judge(self, x, y):
        self.net.eval()
        return {"loss": self.criterion(self.net(x), y)}

    def run(self, loader):
        for x, y in loader:
            found = self.judge(x.cuda(), y.cuda())
            print(found["loss"].item())
            self.listener(**found)


class Named:
    def __init__(self, net: nn.Module, criterion):
        self.net, self.criterion = net.cuda(), criterion

    def judge(self, x, y):
        self.net.eval()
        return self.criterion(self.net(x), y)

    def once(self, x, y):
        return self.judge(x, y).item()  # maybe: GPU201

    def through(self, runner, loader):
        return runner(self.judge, loader)


class Silent:
    def __init__(self, net: nn.Module, criterion):
        self.net, self.criterion = net.cuda(), criterion

    def judge(self, x, y):
        self.net.eval()
        return self.criterion(self.net(x), y)

    def run(self, loader):
        with torch.no_grad():
            return [self.judge(x.cuda(), y.cuda()).item() for x, y in loader]
