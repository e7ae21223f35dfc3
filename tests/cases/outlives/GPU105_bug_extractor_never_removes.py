import torch
from torch import nn


def features(model: nn.Module, layer: nn.Module, x):
    grabbed = []
    layer.register_forward_hook(lambda m, i, o: grabbed.append(o.detach()))  # expect: GPU105
    with torch.no_grad():
        model(x)
    return grabbed[0]


def run(model, loader):
    model.cuda().eval()
    for x in loader:
        yield features(model, model.layer3, x.cuda()).mean((2, 3)).cpu()
