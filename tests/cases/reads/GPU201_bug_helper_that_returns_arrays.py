"""The helper, and the one that it calls, make arrays of what the network gives: what they return has no graph."""

# file: windows.py
import numpy as np
import torch
import torch.nn.functional as F


def one_case(net, volume, size):
    total = np.zeros(volume.shape, dtype=np.float32)
    for start in range(0, volume.shape[0] - size, 4):
        window = torch.from_numpy(volume[None, start : start + size]).cuda()
        y = net(window)  # expect: GPU201
        y = F.softmax(y, dim=1)
        y = y.cpu().data.numpy()
        total[start : start + size] += y[0]
    return total.argmax(0), total


def all_cases(net, volumes, size):
    score = 0.0
    for volume, labels in volumes:
        found, probabilities = one_case(net, volume, size)
        score += (found == labels).mean()
    return score / len(volumes)
# file: measure.py
import torch
from windows import all_cases
from networks import Segmenter


def measure(path, volumes):
    net = Segmenter(16).cuda()
    net.load_state_dict(torch.load(path, map_location="cpu"))
    net.eval()
    score = all_cases(net, volumes, size=80)  # expect: GPU201
    return score


if __name__ == "__main__":
    print(measure("net.pth", torch.load("volumes.pt", map_location="cpu")))
# file: networks.py
from torch import nn


class Segmenter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Conv3d(1, width, 3, padding=1)
        self.middle = nn.Sequential(*[nn.Conv3d(width, width, 3, padding=1) for _ in range(8)])
        self.up = nn.Conv3d(width, 2, 1)

    def forward(self, x):
        return self.up(self.middle(self.down(x)))
