"""One loop for both phases, where the evaluation switches grad off, or where the network is training in both."""

import torch
from torch import nn


class Guarded:
    def __init__(self, net: nn.Module, criterion):
        self.net, self.criterion = net.cuda(), criterion
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def learn(self, loader):
        self.net.train()
        return self.go(loader)

    def judge(self, loader):
        self.net.eval()
        with torch.no_grad():
            return self.go(loader, train=False)

    def go(self, loader, train=True):
        total = 0.0
        for x, y in loader:
            loss = self.criterion(self.net(x.cuda()), y.cuda())
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss.item()
        return total


def switched(net, loader, optimizer, train):
    total = 0.0
    with torch.set_grad_enabled(train):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total


def attack(net, loader, optimizer, train):
    for x, y in loader:
        x = x.cuda().requires_grad_()
        loss = nn.functional.cross_entropy(net(x), y.cuda())
        if train:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            loss.backward()
            yield x.grad


def main(train, valid):
    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        model.train()
        switched(model, train, optimizer, True)
        model.eval()
        switched(model, valid, optimizer, False)
        list(attack(model, valid, optimizer, False))
