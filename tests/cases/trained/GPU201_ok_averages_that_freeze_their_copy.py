"""Helpers that average weights freeze their copy, by a loop, a call, a method of their own: on data it makes no graph."""

# file: ema.py
import copy
from copy import deepcopy

import torch


class ModelEMA:
    def __init__(self, model, decay=0.999):
        self.ema = deepcopy(model).eval()
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.ema.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


class Shadow(torch.nn.Module):
    def __init__(self, model, decay=0.9999):
        super().__init__()
        self.model = copy.deepcopy(model)
        self.model.eval()
        self.decay = decay
        self.no_grad()

    def no_grad(self):
        for p in self.model.parameters():
            p.requires_grad = False


class Average(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.ema = deepcopy(model).eval()
        self.requires_grad(False)

    def requires_grad(self, flag=True):
        for p in self.ema.parameters():
            p.requires_grad = flag

    def forward(self, x):
        return self.ema(x)


def averaged(model):
    average = copy.deepcopy(model)
    average.eval()
    for param in average.parameters():
        param.requires_grad = False
    return average


# file: train.py
import torch
from diffusers.training_utils import EMAModel
from ema import Average, ModelEMA, Shadow, averaged
from ema_pytorch import EMA


def validate(ema: ModelEMA, loader):
    right = 0
    for x, y in loader:
        right += (ema.ema(x.cuda()).argmax(1).cpu() == y).sum().item()
    return right


def validate_alias(helper: EMAModel, loader, device):
    model = helper.averaged_model
    model.eval()
    total = 0
    for x, y in loader:
        total += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
    return total


def validate_shadow(shadow: Shadow, loader):
    total = 0
    shadow.model.eval()
    for x, y in loader:
        total += (shadow.model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return total


def validate_net(network, loader):
    network.eval()
    total = 0
    for x, y in loader:
        total += (network(x.cuda()).argmax(1).cpu() == y).sum().item()
    return total


def losses(network, x, y):
    return torch.nn.functional.cross_entropy(network(x), y)


def validate_loss(ema_model: EMAModel, loader):
    network = ema_model.averaged_model
    network.eval()
    for x, y in loader:
        print(losses(network, x.cuda(), y.cuda()).item())


class Trainer:
    def __init__(self, net, loader):
        self.net = net.cuda()
        self.loader = loader
        self.ema = ModelEMA(self.net)
        self.average = Average(self.net)
        self.lib = EMA(self.net, beta=0.999)
        self.third = averaged(self.net)
        self.optimizer = torch.optim.Adam(net.parameters())

    def validate(self):
        self.ema.ema.eval()
        total = 0
        for x, y in self.loader:
            total += (self.ema.ema(x.cuda()).argmax(1).cpu() == y).sum().item()
        return total

    def validate_average(self):
        self.average.eval()
        total = 0
        for x, y in self.loader:
            total += (self.average(x.cuda()).argmax(1).cpu() == y).sum().item()
        return total

    def validate_library(self):
        self.lib.ema_model.eval()
        total = 0
        for x, y in self.loader:
            total += (self.lib.ema_model(x.cuda()).argmax(1).cpu() == y).sum().item()
        return total

    def validate_third(self):
        self.third.eval()
        total = 0
        for x, y in self.loader:
            total += (self.third(x.cuda()).argmax(1).cpu() == y).sum().item()
        return total


def main(loader):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 2048), torch.nn.Linear(2048, 10)).cuda()
    ema = ModelEMA(net)
    shadow = Shadow(net)
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(net)
    validate(ema, loader)
    validate_shadow(shadow, loader)
    validate_net(ema.ema, loader)
    kept = averaged(net)
    validate_net(kept, loader)
