import torch
from torch import nn


def features(model: nn.Module, layer: nn.Module, x):
    grabbed = []
    handle = layer.register_forward_hook(lambda m, i, o: grabbed.append(o.detach()))
    try:
        with torch.no_grad():
            model(x)
    finally:
        handle.remove()
    return grabbed[0]


def run(model, loader):
    model.cuda().eval()
    return [features(model, model.layer3, x.cuda()).mean((2, 3)).cpu() for x in loader]
