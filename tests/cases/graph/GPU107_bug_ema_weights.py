import copy

import torch
from torch import nn


class EMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {k: p.clone().detach() for k, p in model.named_parameters()}

    def update(self, model):
        for k, p in model.named_parameters():
            self.shadow[k] = self.decay * self.shadow[k] + (1 - self.decay) * p  # expect: GPU107|GPU101


def train(model, loader, opt):
    ema = EMA(model.cuda())
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
    return copy.copy(ema.shadow)
