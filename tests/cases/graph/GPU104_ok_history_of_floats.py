import torch
from torch import nn


class History:
    def __init__(self):
        self.rows = []

    def log(self, **values):
        self.rows.append({k: float(v) for k, v in values.items()})


def train(net, loader, opt):
    hist, plain = History(), []
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        hist.log(step=i, loss=loss)
        plain.append({"step": i, "loss": loss.item()})
    return hist, plain
