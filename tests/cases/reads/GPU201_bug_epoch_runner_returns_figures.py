"""One loop for every phase goes backward only where it is told to; what it returns are figures, not what the network gave."""

import torch
from torch import nn


class Runner:
    def __init__(self, net: nn.Module, criterion, reporter):
        self.net, self.criterion, self.reporter = net.cuda(), criterion, reporter

    def test(self, loader):
        self.net.eval()
        return self._epoch(loader)  # maybe: GPU201

    def validate(self, loader, model):
        model.eval()
        return self._scores(loader, model)  # expect: GPU201@v

    def fit(self, loader, optimizer):
        self.net.train()

        def learn(loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return self._epoch(loader, learn)

    def _epoch(self, loader, learn=lambda loss: None):
        for number, (x, y) in enumerate(loader):
            out = self.net(x.cuda())  # low: GPU201
            loss = self.criterion(out, y.cuda())
            learn(loss)
            self.reporter.note(number, out, y, loss.item())
        return self.reporter.summary()

    def _scores(self, loader, model):
        right = seen = 0
        for x, y in loader:
            out = model(x.cuda())  # expect: GPU201@v
            right += (out.argmax(1) == y.cuda()).sum().item()
            self.reporter.note(seen, out, y, 0.0)
            seen += len(y)
        return right / seen
