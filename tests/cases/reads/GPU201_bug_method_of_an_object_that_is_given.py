"""What the network gives goes through a method of something that is handed in; all that the project has of that name only compute."""

# file: scaling.py
import torch


class Standard:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def restore(self, x):
        return x * self.std + self.mean


class MinMax:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def restore(self, x):
        return x * (self.high - self.low) + self.low


def absolute_error(predicted, target):
    return torch.abs(predicted - target).mean()
# file: engine.py
import torch
import scaling


class Engine:
    def __init__(self, model, scaler, device):
        self.model = model.to(device)
        self.scaler = scaler
        self.opt = torch.optim.Adam(self.model.parameters())
        self.loss = scaling.absolute_error

    def step(self, x, y):
        self.model.train()
        predicted = self.scaler.restore(self.model(x))
        loss = self.loss(predicted, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def check(self, x, y):
        self.model.eval()
        predicted = self.scaler.restore(self.model(x))  # expect: GPU201
        loss = self.loss(predicted, y)
        return loss.item()
# file: main.py
import torch
from engine import Engine
from networks import Forecaster
from scaling import Standard

engine = Engine(Forecaster(512), Standard(0.5, 2.0), "cuda")
data = torch.load("data.pt", map_location="cpu")
for epoch in range(20):
    for x, y in data["train"]:
        engine.step(x.cuda(), y.cuda())
    for x, y in data["test"]:
        print(engine.check(x.cuda(), y.cuda()))
# file: networks.py
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Conv1d(width, width, 3), nn.ReLU()) for _ in range(8)])

    def forward(self, x):
        return self.layers(x)
