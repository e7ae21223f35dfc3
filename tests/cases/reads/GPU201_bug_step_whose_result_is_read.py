"""What a step of the evaluation returns is only ever read as a number."""

import torch
from torch import nn


class Fit:
    def __init__(self, net: nn.Module, optimizer, criterion):
        self.net, self.optimizer, self.criterion = net.cuda(), optimizer, criterion

    def learn(self, x, y):
        self.net.train()
        loss = self.criterion(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss}

    def judge(self, x, y):
        self.net.eval()
        guess = self.net(x)  # expect: GPU201
        loss = self.criterion(guess, y)
        return {"loss": loss, "guess": guess}

    def fit(self, train, valid, log):
        for x, y in train:
            log("train", self.learn(x.cuda(), y.cuda())["loss"].item())
        for x, y in valid:
            found = self.judge(x.cuda(), y.cuda())
            log("valid", found["loss"].item())


def off_by(net: nn.Module, x, y):
    net.eval()
    return (net(x) - y).abs().mean()  # expect: GPU201


def report(net, loader):
    net.cuda()
    return [float(off_by(net, x.cuda(), y.cuda())) for x, y in loader]
