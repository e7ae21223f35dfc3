"""A copy; what the host keeps when the network moves on; and weights that nothing changes any more."""

import copy

import torch
from torch import nn


def step(net, loader, optimizer):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_the_host(net, loader, epochs, score):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    lowest, best = 1e9, None
    for _ in range(epochs):
        net.cuda()
        step(net, loader, optimizer)
        current = score(net)
        if current < lowest:
            lowest = current
            net.cpu()
            best = net.state_dict()
    return best


def until_good(net, loader, score):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best = None
    while True:
        step(net, loader, optimizer)
        if score(net) > 0.9:
            best = net.state_dict()
            break
    return best


def on_the_host(net, loader, epochs, score):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    lowest, best = 1e9, None
    for _ in range(epochs):
        step(net, loader, optimizer)
        current = score(net)
        if current < lowest:
            lowest = current
            best = copy.deepcopy({key: value.cpu() for key, value in net.state_dict().items()})
    return best
