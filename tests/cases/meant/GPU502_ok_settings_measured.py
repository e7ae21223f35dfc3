import gc

import torch
from torch import nn


def run(net: nn.Module, x, mode):
    net = torch.compile(net, mode=mode) if mode else net
    return net(x.cuda()).sum()


def benchmark_modes(net: nn.Module, x, kinds, modes):
    found = []
    for kind in kinds:
        for mode in modes:
            found.append((kind, mode, float(run(net.cuda().to(kind), x, mode))))  # low: GPU505  # maybe: GPU201
            gc.collect()
    return found
