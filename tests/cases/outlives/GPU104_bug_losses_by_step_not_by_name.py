"""A term of the loss has its slot, written over in each forward; a slot for each step is a log that grows."""

import torch
from torch import nn
from torch.nn import functional as F


class Terms(nn.Module):
    def __init__(self):
        super().__init__()
        self._terms = {}

    def note(self, name, value):
        self._terms[name] = value

    def terms(self):
        return list(self._terms.values())


class Net(Terms):
    def __init__(self, width):
        super().__init__()
        self.body, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.weight = 0.1

    def forward(self, x):
        mask = self.norm(self.body(x)).softmax(-1)
        entropy = -(mask * mask.log()).sum(1).mean()
        self.note("sparsity", self.weight * entropy)
        return mask


class Log:
    def __init__(self):
        self.rows = {}

    def note(self, step, value):
        self.rows[step] = value


def train(net: Net, loader, optimizer, width):
    log = Log()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        (loss + sum(net.terms())).backward()
        optimizer.step()
        log.note(step, loss)  # expect: GPU101|GPU104
    net.eval()
    with torch.no_grad():
        net(torch.zeros(1, width).cuda())
    return log
