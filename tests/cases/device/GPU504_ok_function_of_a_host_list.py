"""What the function is applied to was brought to the host as a whole."""

import torch
from torch import nn


def epoch(net: nn.Module, loader, device):
    right = 0
    with torch.no_grad():
        for x, y in loader:
            scores = net(x.to(device)).softmax(-1).cpu()
            right += sum([torch.argmax(row).item() == int(t) for row, t in zip(scores, y)])
    return right
