"""Helpers that average weights in a copy whose parameters still require grad."""

from copy import deepcopy

import torch
from timm.utils import ModelEmaV2


class Slow:
    """Updated under no_grad, and trainable all the same."""

    def __init__(self, model, decay=0.999):
        self.model = deepcopy(model)
        self.model.eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


def validate(slow: Slow, loader):
    right = 0
    for x, y in loader:
        right += (slow.model(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right


class Trainer:
    def __init__(self, net, loader):
        self.net = net.cuda()
        self.loader = loader
        self.ema = ModelEmaV2(self.net)
        self.optimizer = torch.optim.Adam(net.parameters())

    def validate(self):
        self.ema.module.eval()
        total = 0
        for x, y in self.loader:
            total += (self.ema.module(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
        return total
