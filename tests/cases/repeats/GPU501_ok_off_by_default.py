"""Every so many updates, if somebody asks for it; nobody does, and zero is never."""

# file: training.py
import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, optimizer, every=0):
        self.model, self.optimizer, self.every = model.cuda(), optimizer, every
        self.updates = 0

    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.every > 0 and self.updates % self.every == 0:
            torch.cuda.empty_cache()


# file: main.py
import torch
from torch import nn
from training import Trainer


def main(loader):
    model = nn.Linear(512, 10)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for x, y in loader:
        trainer.step(x, y)
