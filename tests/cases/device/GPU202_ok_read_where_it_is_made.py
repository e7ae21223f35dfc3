"""A step on the CPU: the array becomes a tensor and the result an array, and nothing is fetched from a GPU."""

import torch
from torch import nn


class Party:
    def __init__(self, width):
        self.layer = nn.Linear(width, 4)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), 0.1)

    def parts(self, rows):
        x = torch.tensor(rows).float()
        return self.layer.forward(x).detach().numpy()

    def learn(self, rows, gradient):
        x = torch.tensor(rows).float()
        before = self.layer.forward(x).detach().numpy()
        out = self.layer.forward(x)
        out.backward(gradient=torch.tensor(gradient).float())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return before
