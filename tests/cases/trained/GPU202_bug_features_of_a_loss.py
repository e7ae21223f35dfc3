"""Losses over what a pretrained network sees: nobody freezes it."""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import vgg16, vgg19


class FeatureLoss(nn.Module):
    def __init__(self, upto=16):
        super().__init__()
        self.seen = vgg19(pretrained=True).features[:upto]

    def look(self, picture):
        return self.seen(picture)

    def forward(self, made, wanted):
        return F.mse_loss(self.look(made), self.look(wanted))  # expect: GPU202


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        layers = vgg16(weights="DEFAULT").features
        self.first, self.second = layers[:5], layers[5:10]

    def forward(self, picture):
        first = self.first(picture)
        return first, self.second(first)


class PerceptualLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = Layers()
        self.weights = (1.0, 0.5)

    def forward(self, made, wanted):
        ours = self.layers(made)
        theirs = self.layers(wanted)  # expect: GPU202
        return sum(w * F.l1_loss(a, b) for w, a, b in zip(self.weights, ours, theirs))


def train(net, loader):
    losses = [FeatureLoss().cuda(), PerceptualLoss().cuda()]
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        made = net(x.cuda())
        loss = sum(one(made, y.cuda()) for one in losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
