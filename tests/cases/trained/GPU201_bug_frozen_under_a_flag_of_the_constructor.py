"""The same constructors, asked not to freeze; one that only freezes where it is asked to; a holder of a network that does
not freeze itself."""
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
    def __init__(self, backbone, frozen=False):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 2048, 3), nn.Conv2d(2048, 512, 3))
        if frozen:
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
    return network(a * 2 - 1, b * 2 - 1)  # expect: GPU201@d


def compare(pairs):
    network = Distance("resnet").to("cuda")
    network.eval()
    return [distance(a.cuda(), b.cuda(), network).item() for a, b in pairs]  # expect: GPU201@d


def spread(loader):
    trunk = Trunk(trainable=True).cuda().eval()
    return [trunk(images.cuda())[1].std().item() for images in loader]  # expect: GPU201


def judged(loader):
    judge = Judge("vgg").cuda().eval()
    rows = []
    for images in loader:
        rows.append(judge(images.cuda()).detach().cpu().numpy())  # expect: GPU201
    return rows
