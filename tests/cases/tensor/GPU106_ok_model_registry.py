from functools import cache

import torch
from torchvision import models

_MODELS = {}


def get_model(name):
    """One model a name; kept on purpose for the life of the service."""
    if name not in _MODELS:
        _MODELS[name] = getattr(models, name)(weights="DEFAULT").cuda().eval()
    return _MODELS[name]


@cache
def labels(path):
    with open(path) as f:
        return f.read().split()


@torch.inference_mode()
def classify(name, x, path):
    return labels(path)[get_model(name)(x.cuda()).argmax().item()]
