"""A module whose base has its types named, `Distance[Settings]`: neither of them has a parameter, and it is given data."""
# file: distances.py
from typing import Generic, TypeVar

import torch
from torch import nn

S = TypeVar("S")


class Distance(nn.Module, Generic[S]):
    def __init__(self, reference, settings):
        super().__init__()
        self.reference = reference
        self.settings = settings


class Settings:
    power = 2


class Moments(Distance[Settings]):
    def forward(self, paths):
        gap = self.reference.mean(0) - paths.mean(0)
        return gap.abs().pow(self.settings.power).mean()
# file: compare.py
import numpy as np
import torch
from distances import Moments, Settings

distance = Moments(torch.from_numpy(np.load("paths.npy")).cuda(), Settings())
found = []
for name in open("files.txt"):
    paths = torch.from_numpy(np.load(name.strip())).cuda()
    found.append(distance(paths).item())
print(found)
