"""What is set is a class's own property, or stands on what is a tensor or a parameter."""

import torch
from torch import nn
from torchvision import models


class Switched(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.resnet18(weights="DEFAULT")
        self._wanted = True

    @property
    def requires_grad(self):
        return self._wanted

    @requires_grad.setter
    def requires_grad(self, wanted):
        self._wanted = wanted
        self.trunk.requires_grad_(wanted)

    def forward(self, pictures):
        return self.trunk(pictures)


def train(loader):
    net = Switched().cuda()
    net.requires_grad = False
    head = nn.Linear(1000, 10).cuda()
    head.weight.requires_grad = False
    offset = torch.zeros(10, device="cuda")
    offset.requires_grad = True
    optimizer = torch.optim.Adam([head.bias, offset])
    for pictures, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(net(pictures.cuda())) + offset, labels.cuda()).backward()
        optimizer.step()


def freeze(net):
    for name, parameter in net.named_parameters():
        parameter.requires_grad = "head" in name
