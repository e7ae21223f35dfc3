"""Functions called through a class: one gets the instance after all, by another name; one switches grad off."""

import torch
from torch import nn


class Trainer:
    def __init__(this, network):
        this.network = network.cuda()
        this.losses = []

    def check(this, loader):
        this.network.eval()
        with torch.no_grad():
            for inputs, _ in loader:
                this.losses.append(this.network(inputs.cuda()).mean().item())

    def run(this, loader):
        Trainer.check(this, loader)


class Tools:
    def validate(network, loader, criterion):
        network.eval()
        total = 0
        with torch.no_grad():
            for inputs, targets in loader:
                total += criterion(network(inputs.cuda()), targets.cuda())
        return total / len(loader)

    def run(loader):
        return Tools.validate(nn.Linear(8, 2).cuda(), loader, nn.CrossEntropyLoss())
