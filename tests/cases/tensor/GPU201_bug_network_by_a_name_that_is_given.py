# file: networks/__init__.py
from .plain import *
# file: networks/plain.py
from torch import nn


def narrow():
    return nn.Sequential(nn.Conv2d(3, 512, 3), nn.Conv2d(512, 1024, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def wide():
    return nn.Sequential(nn.Conv2d(3, 512, 3), nn.Conv2d(512, 2048, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
# file: score.py
import argparse

import networks


def main(loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="wide")
    args = parser.parse_args()
    first = networks.__dict__[args.arch]().cuda()
    second = getattr(networks, args.arch)().cuda()
    right = 0
    for pictures, labels in loader:
        right += (first(pictures.cuda()).argmax(1).cpu() == labels).sum().item()  # expect: GPU201
        right += (second(pictures.cuda()).argmax(1).cpu() == labels).sum().item()  # maybe: GPU201
    return right
