"""A table goes into the network in each round and comes back: whether the network reads it is not seen. A state that is no
table is there to be read."""

import torch
from torch import nn


def embed(loader, model, endpoints):
    model.eval()
    for data, _ in loader:
        endpoints = model(data.cuda(), endpoints)  # low: GPU103  # maybe: GPU201
        for key, value in endpoints.items():
            endpoints[key] = endpoints[key].view(3, -1)
        yield endpoints


def embed_one(loader, model, endpoints):
    model.eval()
    for data, _ in loader:
        endpoints = model(data.cuda(), endpoints)  # low: GPU103  # maybe: GPU201
        yield endpoints["emb"].cpu()


def follow(loader, model: nn.Module, state: torch.Tensor):
    model.eval()
    for data, _ in loader:
        out, state = model(data.cuda(), state)  # expect: GPU103  # maybe: GPU201
        yield out.argmax(1).cpu()
