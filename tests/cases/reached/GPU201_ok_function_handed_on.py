"""A function that is handed on runs under the mode of whoever calls it."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def make_train(model, criterion):
    def train(x, y):
        model.train()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return train


def make_check(model, criterion):
    def check(x, y):
        model.eval()
        out = model(x)
        return criterion(out, y).item()

    return check


def over(loader, action):
    return sum(action(x.cuda(), y.cuda()) for x, y in loader)


def silently(loader, action):
    with torch.no_grad():
        return [action(x.cuda(), y.cuda()) for x, y in loader]


learn = make_train(model, nn.MSELoss())
look = make_check(model, nn.MSELoss())
for _ in range(10):
    over([], learn)
    with torch.no_grad():
        over([], look)


def score(x, y):
    model.eval()
    return (model(x) - y).abs().mean().item()


silently([], learn)
silently([], score)
