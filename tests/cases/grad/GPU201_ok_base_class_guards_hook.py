"""A base class runs the hook that its subclasses fill in, with grad off."""

import torch


class Runner:
    def __init__(self, network, loader):
        self.network = network
        self.loader = loader

    def run(self, epochs):
        for _ in range(epochs):
            self.fit_epoch()
            with torch.no_grad():
                self.check_epoch()

    def fit_epoch(self):
        raise NotImplementedError

    def check_epoch(self):
        raise NotImplementedError


class PairRunner(Runner):
    def fit_epoch(self):
        self.network.train()

    def check_epoch(self):
        self.network.eval()
        total = 0.0
        for left, right in self.loader:
            total += (self.network(left) - self.network(right)).abs().mean().item()
        return total
