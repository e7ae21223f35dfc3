from collections.abc import Iterable
from itertools import repeat

from torch import nn


def _ntuple(n):
    def parse(x):
        if isinstance(x, Iterable):
            return x
        return tuple(repeat(x, n))

    return parse


to_2tuple = _ntuple(2)


def conv3x3(inside, outside, stride=1, groups=1):
    return nn.Conv2d(inside, outside, kernel_size=3, stride=stride, padding=1, groups=groups, bias=False)


class Basic(nn.Module):
    expansion = 1

    def __init__(self, inside, planes, stride=1, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = conv3x3(inside, planes, stride)
        self.bn1 = norm(planes)
        self.conv2 = conv3x3(planes, planes * self.expansion)

    def forward(self, x):
        return self.conv2(self.bn1(self.conv1(x)))


class Bottleneck(Basic):
    expansion = 4

    def __init__(self, inside, planes, stride=1, norm=nn.BatchNorm2d):
        nn.Module.__init__(self)
        self.conv1 = nn.Conv2d(inside, planes, 1, bias=False)
        self.conv2 = conv3x3(planes, planes, stride)
        self.conv3 = nn.Conv2d(planes, planes * self.expansion, 1, bias=False)


class ConvNorm(nn.Sequential):
    def __init__(self, inside, outside, kernel=3, stride=1, groups=1):
        super().__init__(
            nn.Conv2d(inside, outside, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outside),
        )


class Wide(nn.Linear):
    def __init__(self, inside, outside, **given):
        super().__init__(inside, outside * 2, **given)
