"""What the helper enters by default is about the types of numbers, and nothing switches grad off."""

import torch
from torch import nn


class Encoder:
    def __init__(self, network: nn.Module):
        self.network = network.cuda().eval()

    def encode(self, loader):
        self.network.eval()
        rows = []
        for batch in loader:
            rows.append(_one(self.network, batch.cuda()).detach().cpu().numpy())  # expect: GPU201@a
        return rows


def _one(network, batch, context=torch.autocast("cuda")):
    with context:
        return network(batch)  # maybe: GPU201


def accuracy(network, loader, context=torch.autocast("cuda")):
    network.eval()
    right = 0
    with context:
        for images, labels in loader:
            right += (network(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # low: GPU201
    return right
