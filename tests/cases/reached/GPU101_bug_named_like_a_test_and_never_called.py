"""A function that is named like a test, in a file of no tests, and that nothing calls."""

# file: train.py
import torch
from torch import nn


def test_partial_epoch(model, loader):
    model.eval()
    found = []
    for x in loader:
        found.append(model(x.cuda()))  # note: GPU101  # note: GPU201
    return torch.cat(found).argmax(1).tolist()


def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for x in loader:
        optimizer.zero_grad()
        model(x.cuda()).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    from data import loader

    train(nn.Sequential(nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3)).cuda(), loader)


# file: data.py
loader = [[1.0]]
