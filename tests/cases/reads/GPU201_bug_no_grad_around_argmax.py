import torch
from torch import nn


def accuracy(model: nn.Module, loader, device):
    model.eval()
    right, n = 0, 0
    for x, y in loader:
        out = model(x.to(device))  # expect: GPU201
        with torch.no_grad():
            pred = out.argmax(dim=1)
            right += (pred == y.to(device)).sum().item()
        n += len(y)
    return right / n
