import torch
from torch import nn


def probe(model, loader, grad_mode):
    guard = {"train": torch.enable_grad, "eval": torch.no_grad}[grad_mode]
    model.eval()
    acc = 0
    for x, y in loader:
        with guard():
            acc += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return acc
