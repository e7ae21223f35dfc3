"""The base class, which comes by `import *`, runs the evaluation of its subclasses with grad off."""

# file: bases.py
import torch


class Base:
    def report(self, loader):
        with torch.no_grad():
            return self.accuracy(loader)
# file: classifier.py
import torch
import torch.nn.functional as F

from bases import *


class Classifier(Base):
    def __init__(self, net: torch.nn.Module):
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
            out = self.net(x.cuda())
            right += (out.argmax(1).cpu() == y).sum().item()
        return right
