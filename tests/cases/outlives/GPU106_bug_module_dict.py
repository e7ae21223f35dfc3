import torch
from torch import nn

_CACHE = {}


def positional(model: nn.Module, key, x):
    if key not in _CACHE:
        _CACHE[key] = model.pos_encoder(x.cuda())  # expect: GPU106|GPU101
    return _CACHE[key]


def train(model, loader, opt):
    for key, x, y in loader:
        loss = nn.functional.mse_loss(model.body(positional(model, key, x)), y.cuda())
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
