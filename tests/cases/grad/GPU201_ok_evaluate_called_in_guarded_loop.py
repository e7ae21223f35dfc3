import torch
from torch import nn


class Trainer:
    def __init__(self, net: nn.Module, loaders, opt, device):
        self.net, self.loaders, self.opt, self.device = net.to(device), loaders, opt, device
        self.crit = nn.CrossEntropyLoss()

    def _run(self, loader, train):
        self.net.train(train)
        total = 0.0
        for x, y in loader:
            loss = self.crit(self.net(x.to(self.device)), y.to(self.device))
            if train:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            total += loss.item()
        return total / len(loader)

    def fit(self, epochs):
        for _ in range(epochs):
            tr = self._run(self.loaders["train"], True)
            with torch.no_grad():
                va = self._run(self.loaders["val"], False)
            print(tr, va)
