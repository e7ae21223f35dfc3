from collections import deque

import torch
from torch import nn


def validation_curve(model, loader, device):
    window = deque()
    mse = nn.MSELoss()
    model.eval()
    for x, y in loader:
        err = mse(model(x.to(device)), y.to(device))  # expect: GPU201
        window.append(err)  # expect: GPU101
    return sum(window) / len(window)
