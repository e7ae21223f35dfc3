"""Which network runs is chosen by name, and each is given what it needs."""

import argparse

import torchvision
from torch import nn


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torchvision.models.resnet50()

    def forward(self, x):
        return self.net(x)


class Guided(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.mix = torchvision.models.resnet50(), nn.Linear(7, 1000)

    def forward(self, x, hint):
        return self.net(x) + self.mix(hint)


def test(name, net, loader):
    net.eval()
    for x, hint in loader:
        if name == "plain":
            out = net(x.cuda())  # expect: GPU201
        else:
            out = net(x.cuda(), hint.cuda())  # maybe: GPU201
        print(out.argmax(1).tolist())


name = argparse.ArgumentParser().parse_args().name
if name == "plain":
    chosen = Plain()
else:
    chosen = Guided()
test(name, chosen.cuda(), load("test"))
