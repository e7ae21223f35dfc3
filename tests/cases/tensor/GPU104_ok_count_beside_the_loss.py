"""The second result of a criterion of the project is a number, on each of its ways."""

import torch
from torch import nn


class PairLoss(nn.Module):
    def forward(self, x, y, strategy="all"):
        if strategy == "none":
            return nn.functional.cross_entropy(x, y), 0
        elif strategy == "hard":
            loss = torch.zeros(1).cuda()
            count = 0
            for label in y.unique():
                loss += x[y == label].sum()
                count += 1
            return loss, count
        pairs = self.select(x)
        loss = torch.relu(x[pairs[0]] - x[pairs[1]])
        return loss.mean(), len(pairs[0])


class Meter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


def train(loader, model, criterion, optimizer, strategy):
    counts = Meter()
    for x, y in loader:
        loss, n = criterion(model(x.cuda()), y.cuda(), strategy=strategy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        counts.update(n)


def main(loader, strategy):
    model = nn.Linear(3, 4).cuda()
    criterion = PairLoss().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(loader, model, criterion, optimizer, strategy)
