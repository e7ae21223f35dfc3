"""As few weights, but whole pictures come out: what is saved grows with the picture, and not with the weights."""

import torch
from torch import nn


class Sharpen(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Conv2d(3, width, 9, padding=4)
        self.second = nn.Conv2d(width, 32, 1)
        self.last = nn.Conv2d(32, 3, 5, padding=2)

    def forward(self, x):
        return self.last(torch.relu(self.second(torch.relu(self.first(x)))))


def evaluate(loader, weights):
    net = Sharpen()
    net.load_state_dict(torch.load(weights, map_location="cpu"))
    net.cuda().eval()
    total = 0.0
    for blurred, sharp in loader:
        guess = net(blurred.cuda())  # expect: GPU201
        total += nn.functional.mse_loss(guess, sharp.cuda()).item()
    return total / len(loader)
