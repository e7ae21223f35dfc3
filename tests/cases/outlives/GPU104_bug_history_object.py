import torch
from torch import nn


class History:
    def __init__(self):
        self.rows = []

    def log(self, **values):
        self.rows.append(values)


def train(net, loader, opt):
    hist = History()
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        hist.log(step=i, loss=loss)  # expect: GPU104|GPU101
    return hist
