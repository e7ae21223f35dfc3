"""Networks in eval mode through which gradients must flow, or which somebody does train."""

import copy

import torch
from torch import nn
from torchvision.models import resnet18, vgg16


def stylize(transform: nn.Module, loader, device):
    judge = vgg16(weights="DEFAULT").features.to(device).eval().requires_grad_(False)
    optimizer = torch.optim.Adam(transform.parameters())
    for image, _ in loader:
        image = image.to(device)
        made = transform(image)
        loss = (judge(made) - judge(encode(image))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tune_in_eval_mode(loader):
    network = resnet18(weights="DEFAULT").eval()
    head = nn.Linear(1000, 2)
    optimizer = torch.optim.SGD([{"params": network.parameters()}, {"params": head.parameters()}], lr=0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(head(network(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Pair(nn.Module):
    def __init__(self, left, right):
        super().__init__()
        self.left, self.right = left, right

    def forward(self, x):
        return self.left(x) + self.right(x)


def two_halves(make, loader):
    left = make()
    right = copy.deepcopy(left)
    both = Pair(left, right)
    optimizer = torch.optim.SGD(both.parameters(), lr=0.1)
    for x, y in loader:
        loss = (left(x) - right(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def encode(image):
    return image
