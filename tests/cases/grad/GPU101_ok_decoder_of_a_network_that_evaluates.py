"""A network decodes step by step where it does not train: only who has put it into eval mode, and switched grad off, gets there."""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(512, 512), nn.Linear(512, 30000)

    def forward(self, x, y):
        if self.training:
            return nn.functional.cross_entropy(self.head(self.cell(x)[0]), y)
        return self.greedy(x)

    def greedy(self, x):
        found = []
        for _ in range(40):
            x, _ = self.cell(x)
            found.append(self.head(x))
        return torch.stack(found).max(-1)[1]


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        model(x.cuda(), y.cuda()).backward()
        optimizer.step()


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        return [model(x.cuda(), y.cuda()) for x, y in loader]


def main(loader, others):
    model = Reader().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        train(model, loader, optimizer)
        print(validate(model, others))
