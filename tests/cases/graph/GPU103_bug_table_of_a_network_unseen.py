"""A table goes into the network in each round and comes back: whether the network reads it is not seen."""

import torch
from torch import nn


def embed(loader, model, endpoints):
    model.eval()
    for data, _ in loader:
        endpoints = model(data.cuda(), endpoints)  # low: GPU103  # maybe: GPU201
        for key, value in endpoints.items():
            endpoints[key] = endpoints[key].view(3, -1)
        yield endpoints
