"""Chunks that the loop itself moves to the device, and batches by the loader, to the last of them."""

import torch
from torch import nn


@torch.no_grad()
def in_chunks(net: nn.Module, samples, chunk, device):
    net.to(device).eval()
    found = []
    for begin in range(0, len(samples), chunk):
        found.append(net(samples[begin : begin + chunk].to(device)))  # low: GPU102
    return torch.cat(found)


@torch.no_grad()
def of_all(net: nn.Module, loader, device):
    net.to(device).eval()
    outs = []
    for number, (x, _) in enumerate(loader):
        if number % 50 == 0:
            print(number)
        outs.append(net(x.to(device)))  # low: GPU102
    outs = torch.cat(outs).cpu().numpy()
    return outs.mean(0)
