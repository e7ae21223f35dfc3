"""Scripts that time has passed over: the networks have come to need more than these calls hand them, so that each raises."""
# file: networks.py
import torch
from torch import nn
from torchvision import models


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.resnet101(pretrained=True)

    def forward(self, left, right, weights):
        return self.trunk(left) * self.trunk(right) * weights


class Fusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.resnet101(pretrained=True)

    def forward(self, inputs):
        color, depth, normals = inputs
        return self.trunk(color) + self.trunk(depth) + self.trunk(normals)


class Optional(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.trunk = models.resnet101(pretrained=True)
        self.layers = layers

    def forward(self, inputs):
        if self.layers > 0:
            inputs, beside, angles = inputs
            inputs = inputs + beside * angles
        return self.trunk(inputs)
# file: score.py
import torch

from networks import Fusion, Matcher, Optional


def match(loader):
    model = Matcher().cuda().eval()
    total = 0.0
    for left, right in loader:
        total += model(left.cuda(), right.cuda()).mean().item()
    return total


def fuse(loader):
    model = Fusion().cuda().eval()
    total = 0.0
    for color, depth in loader:
        total += model([color.cuda(), depth.cuda()]).mean().item()
    return total


def maybe(loader):
    model = Optional().cuda().eval()
    total = 0.0
    for color, depth in loader:
        total += model((color.cuda(), depth.cuda())).mean().item()  # low: GPU201
    return total
