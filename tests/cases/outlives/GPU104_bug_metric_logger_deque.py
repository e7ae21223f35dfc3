from collections import defaultdict, deque

import torch
import torch.nn.functional as F


class Smoothed:
    def __init__(self, window=2000):
        self.deque = deque(maxlen=window)
        self.total = 0.0
        self.count = 0

    def update(self, value):
        self.deque.append(value)
        self.count += 1
        self.total += value


class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(Smoothed)

    def update(self, **kwargs):
        for k, v in kwargs.items():
            self.meters[k].update(v)


def train(model, loader, opt, device):
    logger = MetricLogger()
    for x, y in loader:
        a, b = model(x.to(device))
        la = F.cross_entropy(a, y.to(device))
        lb = F.cross_entropy(b, y.to(device))
        opt.zero_grad()
        (la + lb).backward()
        opt.step()
        logger.update(la=la, lb=lb.item())  # expect: GPU104|GPU101
