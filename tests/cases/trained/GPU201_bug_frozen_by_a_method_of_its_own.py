"""Networks with a method that says for all of their parameters whether they want grad."""

import torch
from torch import nn


class Base(nn.Module):
    def wants_grad(self, flag):
        for parameter in self.parameters():
            parameter.requires_grad = flag


class Predictor(Base):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 512, 3))
        self.head = nn.Linear(512, 40)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def evaluate(loader, device):
    predictor = Predictor()
    predictor.to(device)
    predictor.eval()
    predictor.wants_grad(False)
    right = 0
    for x, y in loader:
        right += (predictor(x.to(device)).argmax(1).cpu() == y).sum().item()
    return right


def evaluate_trained(loader, device):
    predictor = Predictor()
    predictor.to(device)
    predictor.eval()
    predictor.wants_grad(True)
    right = 0
    for x, y in loader:
        right += (predictor(x.to(device)).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right


print(evaluate([], "cuda"), evaluate_trained([], "cuda"))
