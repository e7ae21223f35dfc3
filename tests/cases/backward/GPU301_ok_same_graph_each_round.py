"""Time of a backward: each round goes through the one graph that was made before the loop."""

from time import time

import torch
from torch import nn


def time_of_backward(activation: nn.Module, x: torch.Tensor) -> float:
    for _ in range(100):
        out = activation(x)
    torch.cuda.synchronize()
    start = time()
    for _ in range(100):
        (out.sum()).backward(retain_graph=True)
    torch.cuda.synchronize()
    return time() - start


network = nn.Sequential(nn.Linear(64, 64), nn.GELU()).cuda()
print(time_of_backward(network, torch.randn(256, 64, device="cuda")))
