"""A meter keeps the last value, which each step replaces, and the sum, which grows: one call, one finding."""
# file: train.py
import torch
import torch.nn.functional as F

from meter import Meter


def train(net: torch.nn.Module, loader, opt):
    net.cuda()
    meter = Meter()
    for x, y in loader:
        loss = F.huber_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss, len(x))  # expect: GPU104|GPU101
    print(meter)
# file: meter.py
class Meter:
    def __init__(self):
        self._val, self._sum, self._count = 0.0, 0.0, 0

    def update(self, value, n):
        self._val = value
        self._sum += value * n
        self._count += n

    def __str__(self):
        return f"{float(self._val):.3f} ({float(self._sum) / self._count:.3f})"
