"""Checkpoints that stay on the GPU through a training: whether they are large, their networks' constructors say in many ways."""

from functools import partial

import torch
from torch import nn

WIDTHS = {"small": (32, 64), "large": (1024, 4096)}


class Settings:
    width = 1536

    def __init__(self, depth):
        self.depth = depth


class Stack(nn.Module):
    table = [(512, 1024), (1024, 2048)]

    def __init__(self, settings, norm=None):
        super().__init__()
        norm = norm or partial(nn.LayerNorm, eps=1e-6)

        def block(inside, outside):
            return [nn.Linear(inside, outside), nn.GELU(), norm(outside)]

        layers = []
        for _ in range(settings.depth):
            layers += block(settings.width, 4 * settings.width) + block(4 * settings.width, settings.width)
        for inside, outside in self.table:
            layers.extend(block(inside, outside))
        self.body = nn.Sequential(*layers)


class Wide(nn.Linear):
    def __init__(self, kind):
        first, second = WIDTHS[kind]
        super().__init__(first * 4, second)


class Halving(nn.Module):
    def __init__(self, size):
        super().__init__()
        width, self.layers = 16, nn.ModuleList()
        while size > 8:
            self.layers.append(nn.Conv2d(width, width * 2, 3))
            width, size = width * 2, size // 2


def resume(net, optimizer, loader, path):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)


def deep(loader, path):
    net = Stack(Settings(2)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    state = torch.load(path)  # expect: GPU403
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    resume(net, optimizer, loader, path)


def wide(loader, path):
    net = Wide("large").cuda()
    optimizer = torch.optim.Adam(net.parameters())
    state = torch.load(path)  # expect: GPU403
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    resume(net, optimizer, loader, path)


def narrow(loader, path):
    net = Wide("small").cuda()
    optimizer = torch.optim.Adam(net.parameters())
    state = torch.load(path)  # low: GPU403
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    resume(net, optimizer, loader, path)


def halving(loader, path):
    net = Halving(64).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    state = torch.load(path)  # low: GPU403
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    resume(net, optimizer, loader, path)
