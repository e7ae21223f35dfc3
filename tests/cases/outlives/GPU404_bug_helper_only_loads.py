"""The copy is handed to a function that does nothing but load it."""

import copy

import torch


def put_back(net, weights):
    if weights is not None:
        net.load_state_dict(weights)


def search(net, loader, step, score):
    net.to("cuda")
    best, kept = 0.0, None
    for x, y in loader:
        step(net, x.cuda(), y.cuda())
        now = score(net)
        if now > best:
            best, kept = now, copy.deepcopy(net.state_dict())  # low: GPU404
    put_back(net, kept)
