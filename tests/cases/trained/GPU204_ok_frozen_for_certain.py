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


def positions(length):
    table = torch.zeros(length, 512)
    table.require_grad = False
    return table
