"""An argument decides whether the step returns a plain number: this caller asks for one."""

from torch import nn


class Trainer:
    def __init__(self, network: nn.Module, loader, optimizer, gather):
        self.network, self.loader, self.optimizer, self.gather = network, loader, optimizer, gather

    def train(self):
        total = 0.0
        for batch in self.loader:
            total += self.train_step(batch, as_number=True)
            self.optimizer.step()
            self.network.zero_grad()
        return total / len(self.loader)

    def train_step(self, batch, as_number=False):
        loss = self.network(**batch)[0]
        loss.backward()
        if as_number:
            return self.gather(loss)
        return loss
