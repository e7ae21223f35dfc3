"""The copy is handed to a function that subtracts it, entry by entry, from weights on the GPU."""

import copy

import torch


def scaled(weights, before, factor):
    moved = {}
    for name, value in weights.items():
        change = value - before[name]
        moved[name] = before[name] + factor * change
    return moved


def client(net, loader, step, device="cuda"):
    net.to(device)
    start = {k: v.clone() for k, v in net.state_dict().items()}
    for x, y in loader:
        step(net, x.to(device), y.to(device))
    net.load_state_dict(scaled(net.state_dict(), start, 2.0))


def handed_out(net, loader, step, aggregate):
    net.to("cuda")
    start = copy.deepcopy(net.state_dict())
    for x, y in loader:
        step(net, x.cuda(), y.cuda())
    return aggregate(start, net.state_dict())


def returned(net, loader, step):
    net.to("cuda")
    start = copy.deepcopy(net.state_dict())
    for x, y in loader:
        step(net, x.cuda(), y.cuda())
    return start
