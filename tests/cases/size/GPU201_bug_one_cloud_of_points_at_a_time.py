"""One sample at a time, which may be large: a cloud of points, of which each is a row; a volume; or a network of which no more is
seen than the layer behind it."""

# file: networks.py
import timm
import torch
from torch import nn


class OfPoints(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Conv1d(3, 64, 1), nn.Conv1d(64, 512, 1))
        self.head = nn.Conv1d(512, 8, 1)

    def forward(self, x):
        return self.head(self.point(x.transpose(1, 2)))


class OfVolumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.Conv3d(16, 16, 3, padding=1))
        self.head = nn.Conv3d(16, 2, 1)

    def forward(self, x):
        return self.head(self.body(x))


class Put(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.net = timm.create_model(name, pretrained=True)
        self.net.classifier = nn.Linear(self.net.classifier.in_features, 1)

    def forward(self, x):
        return self.net(x)
# file: test.py
import sys

import torch
from clouds import Clouds, Pictures, Volumes
from networks import OfPoints, OfVolumes, Put
from torch.utils.data import DataLoader



def of_clouds():
    points = OfPoints().cuda().eval()
    right = 0
    for x, y in DataLoader(Clouds("test"), batch_size=1):
        right += (points(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    print(right)


def of_volumes():
    volumes = OfVolumes().cuda().eval()
    right = 0
    for x, y in DataLoader(Volumes("test"), batch_size=1):
        right += (volumes(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    print(right)


def of_pictures():
    put = Put(sys.argv[1]).cuda().eval()
    right = 0
    for x, y in DataLoader(Pictures("test"), batch_size=1):
        right += (put(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    print(right)


if __name__ == "__main__":
    of_clouds()
    of_volumes()
    of_pictures()
