"""A dict of meters hands each named value to the meter of that name, which adds it up; the values are losses."""
# file: finetune.py
import torch

from bookkeeping.meters import MeterDict


def finetune(detector: torch.nn.Module, loader, optimizer, epochs):
    detector.to("cuda").train()
    for epoch in range(epochs):
        meters = MeterDict()
        for images, boxes in loader:
            losses = detector([im.cuda() for im in images], [{k: v.cuda() for k, v in b.items()} for b in boxes])
            optimizer.zero_grad()
            sum(losses.values()).backward()
            optimizer.step()
            meters.update(losses, n=len(images))  # expect: GPU104|GPU101
        print(epoch, meters)
# file: bookkeeping/meters.py
from collections import defaultdict


class Meter:
    def __init__(self):
        self.sum, self.n = 0.0, 0

    def update(self, value, n):
        self.sum += value * n
        self.n += n

    @property
    def avg(self):
        return self.sum / max(self.n, 1)


class MeterDict(defaultdict):
    def __init__(self):
        super().__init__(Meter)

    def update(self, values, n=1):
        for k, v in values.items():
            self[k].update(v, n)

    def __str__(self):
        return " ".join(f"{k} {float(m.avg):.4f}" for k, m in self.items())
