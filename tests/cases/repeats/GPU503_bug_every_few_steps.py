"""The host waits for the GPU in every so many steps, and reads nothing then."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def train(model: nn.Module, loader, optimizer, device):
    for index, (x, y) in enumerate(loader):
        loss = cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 20 == 0 and device.type == "cuda":
            torch.cuda.synchronize()  # note: GPU503


def wait():
    torch.cuda.synchronize()


def accumulate(model: nn.Module, loader, optimizer):
    for index, (x, y) in enumerate(loader):
        (cross_entropy(model(x.cuda()), y.cuda()) / 4).backward()
        if (index + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
            wait()  # note: GPU503
