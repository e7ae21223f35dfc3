import torch
from torch import nn


def evaluate(loader, small, device):
    net = nn.Identity() if small else nn.Linear(4096, 2048)
    net.to(device)
    net.eval()
    correct = 0
    for x, y in loader:
        out = net(x.to(device))  # expect: GPU201
        correct += (out.argmax(1) == y.to(device)).sum().item()
    return correct
