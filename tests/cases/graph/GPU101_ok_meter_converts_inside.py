import torch
from torch import nn


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, val, n=1):
        if isinstance(val, torch.Tensor):
            val = val.item()
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


class SmoothedValue:
    def __init__(self, size=20):
        self.values, self.size = [], size

    def update(self, value):
        self.values.append(float(value))
        self.values = self.values[-self.size :]


def train(model, loader, opt, device="cuda"):
    losses, smooth = AverageMeter(), SmoothedValue()
    crit = nn.CrossEntropyLoss()
    for x, y in loader:
        loss = crit(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.update(loss, x.size(0))
        smooth.update(loss)
    return losses.avg
