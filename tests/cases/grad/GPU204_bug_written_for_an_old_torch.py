"""Losses are read by `.data[0]`, which fails since torch 0.5; before 0.4 `volatile=True` worked. Only 0.4 itself is harmed."""

from torch import nn
from torch.autograd import Variable


def validate(net, loader):
    net.eval()
    total = 0.0
    for images, labels in loader:
        images = Variable(images.cuda(), volatile=True)  # low: GPU204
        scores = net(images)  # low: GPU201
        loss = nn.functional.cross_entropy(scores, Variable(labels.cuda()))
        total += loss.data[0]
    return total / len(loader)
