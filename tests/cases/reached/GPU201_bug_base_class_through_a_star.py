"""The base class comes by `import *`, over two files: nothing in it calls the evaluation, under a guard or otherwise."""

# file: bases.py
import torch


class Base:
    def __init__(self, width):
        self.width = width

    def save(self, path):
        torch.save(self.net.state_dict(), path)


class Trained(Base):
    def fit(self, loader):
        for x, y in loader:
            self.step(x.cuda(), y.cuda())
# file: classifier.py
import torch
import torch.nn.functional as F

from bases import *


class Classifier(Trained):
    def __init__(self, net: torch.nn.Module, width):
        Trained.__init__(self, width)
        self.net = net.cuda()
        self.opt = torch.optim.Adam(self.net.parameters())

    def step(self, x, y):
        loss = F.cross_entropy(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def accuracy(self, loader):
        self.net.eval()
        right = 0
        for x, y in loader:
            out = self.net(x.cuda())  # expect: GPU201
            right += (out.argmax(1).cpu() == y).sum().item()
        return right
# file: main.py
from classifier import Classifier


def run(net, loader, held_out):
    model = Classifier(net, 64)
    for _ in range(20):
        model.fit(loader)
        print(model.accuracy(held_out))
