import torch
from torch import nn
from torch.nn import functional as F
from torchvision import models


class Perceptual(nn.Module):
    def __init__(self):
        super().__init__()
        layers = list(models.vgg16(weights="DEFAULT").features)
        self.trunk = nn.Sequential(*layers[:16])
        self.trunk.requires_grad = False  # expect: GPU204

    def forward(self, made, real):
        with torch.no_grad():
            wanted = self.trunk(real)
        return F.l1_loss(self.trunk(made), wanted)


def frozen_layers(classes):
    net = models.resnet18(weights="DEFAULT")
    for name, child in net.named_children():
        if name != "layer4":
            child.requires_grad = False  # expect: GPU204
    net.fc = nn.Linear(512, classes)
    return net


def frozen_parameters(classes):
    net = models.resnet18(weights="DEFAULT")
    for p in net.parameters():
        p.require_grad = False  # expect: GPU204
    net.fc = nn.Linear(512, classes)
    return net


def freeze_all_but_the_head(model):
    for part in [model.encoder, model.attention]:
        part.require_grad = False  # low: GPU204
