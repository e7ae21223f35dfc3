"""Helpers that run the network in a context which their caller may choose, and which switches grad off unless he does."""

import torch
from torch import nn


class Encoder:
    def __init__(self, network: nn.Module):
        self.network = network.cuda().eval()

    def encode(self, batches):
        return _encode(self.network, batches)

    def encode_all(self, loader):
        self.network.eval()
        rows = []
        for batch in loader:
            rows.append(_one(self.network, batch.cuda()).cpu().numpy())
        return rows


def _encode(network, batches, context=torch.no_grad()):
    rows = []
    with context:
        for batch in batches:
            rows.append(network(batch.cuda()).cpu().numpy())
    return rows


def _one(network, batch, *, entered=torch.inference_mode):
    with entered():
        return network(batch)
