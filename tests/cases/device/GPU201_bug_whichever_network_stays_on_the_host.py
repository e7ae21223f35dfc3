"""One of several networks, made by a function or a class of the program, runs where it was made."""

# file: nets.py
from torch import nn


class Small(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(3072, width), nn.ReLU(), nn.Linear(width, 10))

    def forward(self, x):
        return self.body(x)


class Large(Small):
    def __init__(self):
        super().__init__(8192)


def large(pretrained=False):
    net = Large()
    if pretrained:
        raise NotImplementedError
    return net


# file: average.py
import torch
from nets import Large, Small, large


def evaluate(kind, weights, loader):
    if kind == "small":
        net = Small(2048)
    elif kind == "large":
        net = large()
    else:
        net = Large()
    net.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()})
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x).argmax(1) == y).sum().item()  # low: GPU201
    return right


def evaluate_there(kind, weights, loader, device):
    net = Small(4096) if kind == "small" else Large()
    net.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()})
    net.to(device).eval()
    right = 0
    for x, y in loader:
        right += (net(x.to(device)).argmax(1) == y.to(device)).sum().item()  # expect: GPU201
    return right
