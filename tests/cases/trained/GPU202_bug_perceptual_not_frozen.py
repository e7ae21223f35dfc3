"""The real side of a perceptual loss through a network that nobody freezes: eval mode does not."""

import torch
from torch import nn
from torchvision import models


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = models.vgg16(weights="DEFAULT").features.cuda()
        self.layers.eval()

    def forward(self, x):
        return self.layers(x)


class Likeness(nn.Module):
    def __init__(self):
        super().__init__()
        self.pictures = Pictures()

    def forward(self, made, real):
        wanted = self.pictures(real).detach()  # low: GPU202
        return nn.functional.l1_loss(self.pictures(made), wanted)
