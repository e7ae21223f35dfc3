import torch
from torch import nn


class NamedLoss(nn.Module):
    def __init__(self, name, weight=1.0):
        super().__init__()
        self.name, self.weight = name, weight

    def forward(self, pred, target):
        out = {}
        out[self.name] = self.weight * nn.functional.smooth_l1_loss(pred, target)
        return out


def train(net, crits, loader, opt):
    meters = {}
    for x, y in loader:
        pred = net(x.cuda())
        losses = {}
        for c in crits:
            losses.update(c(pred, y.cuda()))
        total = sum(losses.values())
        opt.zero_grad()
        total.backward()
        opt.step()
        values = {k: v.item() for k, v in losses.items()}  # maybe: GPU504
        for k, v in values.items():
            meters[k] = meters.get(k, 0.0) + v
    return meters
