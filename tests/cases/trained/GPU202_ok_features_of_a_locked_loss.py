"""Losses over what a pretrained network sees that freeze it, and twins that are trained."""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import resnet18, vgg19


class FrozenLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = vgg19(pretrained=True).features.eval()
        for weight in self.seen.parameters():
            weight.requires_grad = False

    def forward(self, made, wanted):
        return F.mse_loss(self.seen(made), self.seen(wanted))


def requires_grad(net, on):
    for weight in net.parameters():
        weight.requires_grad = on


class LockedLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = vgg19(pretrained=True).features.eval()
        requires_grad(self.seen, False)

    def forward(self, made, wanted):
        return F.mse_loss(self.seen(made), self.seen(wanted))


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.coder = resnet18(weights="DEFAULT")

    def forward(self, one, other):
        return F.cosine_similarity(self.coder(one), self.coder(other))


def train(net, loader):
    losses = [FrozenLoss().cuda(), LockedLoss().cuda()]
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        made = net(x.cuda())
        loss = sum(one(made, y.cuda()) for one in losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
