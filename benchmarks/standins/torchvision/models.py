"""A residual network with the parts, in the order, that scripts expect of `resnet18`."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn


class _Block(nn.Module):
    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        same = stride == 1 and before == channels
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, channels, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class _ResNet(nn.Module):
    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = (64, 64, 128, 256, 512)
        for number, (before, channels) in enumerate(itertools.pairwise(widths), 1):
            first = _Block(before, channels, 1 if number == 1 else 2)
            setattr(self, f"layer{number}", nn.Sequential(first, _Block(channels, channels, 1)))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name, part in self.named_children():
            x = part(x.flatten(1) if name == "fc" else x)
        return x


def resnet18(weights: Any = None, num_classes: int = 1000, **_: Any) -> nn.Module:
    """Not pretrained, whatever is asked for."""
    return _ResNet(num_classes)
