import torch
from torch import nn
from torchvision import models


class Prior(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.vgg16(weights="DEFAULT").features
        self.trunk.requires_grad = False
        for p in self.trunk.parameters():
            p.requires_grad = False

    def forward(self, made):
        return self.trunk(made).mean()


class Switchable(nn.Module):
    """Its switch is its own, and it works."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)

    @property
    def requires_grads(self):
        return self.inner.weight.requires_grad

    @requires_grads.setter
    def requires_grads(self, mode):
        self.inner.requires_grad_(mode)


def positions(length):
    table = torch.zeros(length, 512)
    table.require_grad = False
    return table


def freeze(model):
    for p in model.parameters():
        p.requires_grad = False
    model.encoder.layer[0].weight.requires_grad = False


def train(net, loader, optimizer):
    switchable = Switchable()
    switchable.requires_grads = False
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(switchable(x)), y).backward()
        optimizer.step()


def freeze_by_both(model):
    for name, p in model.named_parameters():
        if "encoder" in name:
            p.requires_grad = False
            p.requires_grad_(False)


def perturbed(net, x, y):
    x.requires_grad_()
    nn.functional.cross_entropy(net(x), y).backward()  # low: GPU202
    x.requires_grad = False
    return x - 0.1 * x.grad.sign()
