"""A step that hands over to an older hook where there is one, and otherwise returns its loss with the graph."""

import torch
from torch import nn


class Trainer:
    def __init__(self, network: nn.Module, loader, optimizer):
        self.network, self.loader, self.optimizer = network, loader, optimizer

    def train(self):
        total = torch.tensor(0.0)
        for number, batch in enumerate(self.loader):
            total += self.train_step(self.network, batch)  # note: GPU101
            self.optimizer.step()
            self.network.zero_grad()
            if number % 50 == 49:
                print(total.item() / (number + 1))

    def train_step(self, network, batch):
        if hasattr(self, "_old_step"):
            return self._old_step(network, batch, self.optimizer)
        network.train()
        loss = network(**batch)[0]
        if self.accumulate > 1:
            loss = loss / self.accumulate
        loss.backward()
        return loss
