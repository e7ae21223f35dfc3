from functools import lru_cache

import torch

_HOST = {}


@lru_cache(maxsize=1)
def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@lru_cache(maxsize=None)
def mask(n):
    return n * (n + 1) // 2


@torch.no_grad()
def features(net, image, name):
    if name not in _HOST:
        _HOST[name] = net(image.to(device())[None]).cpu()
    return _HOST[name]
