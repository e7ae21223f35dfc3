"""A collector's `collector[key] = value` appends: each assignment keeps one more graph."""

from torch import nn


class Collector:
    def __init__(self, names):
        self.columns = {name: [] for name in names}

    def __setitem__(self, name, value):
        self.columns[name].append(value)

    def __getitem__(self, name):
        return self.columns[name][-1]


class Trainer:
    def __init__(self, network: nn.Module, optimizer):
        self.network = network
        self.optimizer = optimizer
        self.collector = Collector(["loss", "step"])

    def run(self, loader):
        for step, (x, y) in enumerate(loader):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.network(x), y)
            loss.backward()
            self.optimizer.step()
            self.collector["step"] = step
            self.collector["loss"] = loss  # expect: GPU101
            print(self.collector["loss"].item())
