"""A forward fills the fields of an object that it has made and gives back: nothing stays with the network."""

import torch
from elsewhere import Cloud
from torch import nn


class Field(nn.Module):
    def __init__(self, names, width):
        super().__init__()
        self.names = names
        self.body = nn.Linear(3, width)
        self.scales = nn.ModuleList([nn.Linear(1, 1) for _ in names])

    def forward(self, points):
        result = self.body(points)
        cloud = Cloud(points=points, data={name: result[:, i] for i, name in enumerate(self.names)})
        for i, name in enumerate(self.names):
            values = cloud.data[name]
            cloud.data[name] = self.scales[i](values.reshape(-1, 1)).reshape(values.shape)
        return cloud


class Recorder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(3, width)
        self.log = {}
        self.calls = 0

    def forward(self, points):
        result = self.body(points)
        self.calls += 1
        self.log[self.calls] = result  # expect: GPU101
        return torch.relu(result)
