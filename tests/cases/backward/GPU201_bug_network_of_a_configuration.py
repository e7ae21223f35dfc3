"""Which network it is says the configuration; one of the project's differentiates in its forward and fails under no_grad."""
# file: surfaces.py
import torch
from torch import nn


class Surface(nn.Module):
    def __init__(self):
        super().__init__()
        self.distance = nn.Sequential(nn.Linear(3, 256), nn.Softplus(100), nn.Linear(256, 1))

    def normals(self, points):
        points.requires_grad_(True)
        value = self.distance(points)
        ones = torch.ones_like(value)
        return torch.autograd.grad(value, points, ones, create_graph=True)[0]

    def forward(self, points):
        return {"value": self.distance(points), "normals": self.normals(points)}
# file: run.py
import importlib

import torch


def network(conf):
    module, _, name = conf["class"].rpartition(".")
    return getattr(importlib.import_module(module), name)(**conf["arguments"])


class Run:
    def __init__(self, conf, loader):
        self.model = network(conf)
        self.model.cuda()
        self.opt = torch.optim.Adam(self.model.parameters())
        self.loader = loader

    def plot(self):
        self.model.eval()
        found = []
        for points in self.loader:
            out = self.model(points.cuda())  # low: GPU201
            found.append(out["value"].detach().cpu())
        self.model.train()
        return torch.cat(found)
