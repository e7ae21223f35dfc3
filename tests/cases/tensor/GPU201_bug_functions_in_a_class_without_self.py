"""A class as a folder of functions: they take no self and are called through the class."""

import torch
from torch import nn


class Trainer:
    def run(loader, epochs):
        network = nn.Linear(8, 2).cuda()
        criterion = nn.CrossEntropyLoss()
        for _ in range(epochs):
            Trainer.validate(network, loader, criterion)

    def validate(network, loader, criterion):
        network.eval()
        total = 0
        for inputs, targets in loader:
            outputs = network(inputs.cuda())  # note: GPU201
            loss = criterion(outputs, targets.cuda())
            total += loss  # expect: GPU101
        return total / len(loader)
