"""Arrays of what has no graph any more, integers and what was detached, say nothing of the graph that was made for it."""

import numpy as np
import torch
from torch import nn


def labels(network: nn.Module, loader):
    network.eval()
    rows = []
    for images in loader:
        rows.append(np.asarray(network(images.cuda()).argmax(1).cpu()))  # expect: GPU201
    return rows


def detached(network: nn.Module, loader):
    network.eval()
    rows = []
    for images in loader:
        rows.append(np.asarray(network(images.cuda()).detach().cpu()))  # expect: GPU201
    return rows


def best(network: nn.Module, loader):
    network.eval()
    rows = []
    for images in loader:
        out = network(images.cuda())  # expect: GPU201
        rows.append(out.argmax(1))
    return torch.cat(rows).cpu().numpy()
