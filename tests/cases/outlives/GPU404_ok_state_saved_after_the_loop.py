"""States that are saved after a loop, and are what they were: of a network of each round, of the last round, saved in it, of one that ends it."""

import torch
import torchvision
from fitting import right, train


def folds(loaders):
    best, weights = 0, None
    for loader, held_out in loaders:
        model = torchvision.models.resnet18().cuda()
        train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
        found = right(model, held_out)
        if found > best:
            best = found
            weights = model.state_dict()
    torch.save(weights, "best.pt")


def until(loader, target):
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        train(model, loader, optimizer)
        if right(model, loader) > target:
            weights = model.state_dict()
            break
    torch.save(weights, "enough.pt")


def last(loader, epochs=10):
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        train(model, loader, optimizer)
        weights = model.state_dict()
    torch.save(weights, "last.pt")


def at_once(loader, target, epochs=10):
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        train(model, loader, optimizer)
        if right(model, loader) > target:
            weights = model.state_dict()
            torch.save(weights, "good.pt")
# file: fitting.py
import torch


def train(model, loader, optimizer):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def right(model, loader):
    model.eval()
    return sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in loader)
