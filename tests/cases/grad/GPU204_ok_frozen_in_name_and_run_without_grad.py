import torch
from torch import nn
from torchvision import models


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.vgg16(weights="DEFAULT").features
        self.trunk.requires_grad = False

    @torch.no_grad()
    def forward(self, made, real):
        return (self.trunk(made) - self.trunk(real)).square().mean()
