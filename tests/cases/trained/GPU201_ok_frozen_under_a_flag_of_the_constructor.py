"""Constructors that freeze all parameters unless they are asked not to, and a measure that holds such a network."""
# file: features.py
import torch
from torch import nn
from torchvision import models


class Trunk(nn.Module):
    def __init__(self, trainable=False, pretrained=True):
        super().__init__()
        layers = models.vgg16(pretrained=pretrained).features
        self.low, self.high = nn.Sequential(), nn.Sequential()
        for k in range(9):
            self.low.add_module(str(k), layers[k])
        for k in range(9, 23):
            self.high.add_module(str(k), layers[k])
        if not trainable:
            for weight in self.parameters():
                weight.requires_grad = False

    def forward(self, x):
        low = self.low(x)
        return low, self.high(low)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = models.resnet50(pretrained=True)

    def forward(self, x):
        return self.net.conv1(x), self.net(x)


class Distance(nn.Module):
    def __init__(self, kind="vgg", on_gpu=True):
        super().__init__()
        self.kind = kind
        if self.kind in ("vgg", "vgg16"):
            self.net = Trunk(trainable=False)
        else:
            self.net = Residual()
        if on_gpu:
            self.net.cuda()

    def forward(self, a, b):
        return sum((x - y).pow(2).mean() for x, y in zip(self.net(a), self.net(b)))


class Judge(nn.Module):
    def __init__(self, backbone, frozen=True):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 512, 3))
        self.frozen = frozen
        if self.frozen:
            self.freeze()

    def freeze(self):
        for weight in self.parameters():
            weight.requires_grad_(False)

    def forward(self, x):
        return self.layers(x)
# file: compare.py
import torch

from features import Distance, Judge, Trunk


def distance(a, b, network):
    return network(a * 2 - 1, b * 2 - 1)


def compare(pairs):
    network = Distance().to("cuda")
    network.eval()
    return [distance(a.cuda(), b.cuda(), network).item() for a, b in pairs]


def spread(loader):
    trunk = Trunk().cuda().eval()
    return [trunk(images.cuda())[1].std().item() for images in loader]


def judged(loader):
    judge = Judge("vgg").cuda().eval()
    rows = []
    for images in loader:
        rows.append(judge(images.cuda()).cpu().numpy())
    return rows
