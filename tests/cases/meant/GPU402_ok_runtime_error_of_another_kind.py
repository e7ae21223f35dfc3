import torch
from torch import nn


def leave(net: nn.Module, x):
    try:
        return net(x)
    except RuntimeError:
        torch.cuda.empty_cache()
        raise
