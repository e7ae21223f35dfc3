"""No second backward is seen; but others get hold of the graph, and may go through it once more."""

import torch
import torch.nn.functional as F
from reports import explain
from torch import nn


class Fit:
    def __init__(self):
        self.net = nn.Linear(8, 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def told(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward(retain_graph=True)  # low: GPU301
            explain(loss)
            self.opt.step()

    def given_back(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward(retain_graph=True)  # low: GPU301
            self.opt.step()
        return loss

    def kept(self, loader):
        for x, y in loader:
            self.last = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            self.last.backward(retain_graph=True)  # low: GPU301
            self.opt.step()
