"""Loops that end after a few rounds: sizes of one picture, windows of it, so many batches as the caller wants."""

from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn


@torch.no_grad()
def at_several_sizes(net: nn.Module, x, sizes):
    net.cuda().eval()
    outs = []
    for height, width in sizes:
        outs.append(net(F.interpolate(x.cuda(), (height, width))))  # low: GPU505
    return torch.stack(outs).mean(0).cpu()


@torch.no_grad()
def in_windows(net: nn.Module, picture, windows, device):
    net.to(device).eval()
    outs = [net(picture[:, :, top:bottom].to(device)) for top, bottom in windows]
    return torch.cat(outs).cpu()


@torch.no_grad()
def of_some_batches(net: nn.Module, loader, count, device):
    net.to(device).eval()
    outs, first = [], []
    for number, (x, _) in enumerate(loader):
        if number >= count:
            break
        outs.append(net(x.to(device)))
    for x, _ in islice(loader, 4):
        first.append(net(x.to(device)))
    return torch.cat(outs).cpu(), torch.cat(first).cpu()


@torch.no_grad()
def in_chunks(net: nn.Module, rays, chunk):
    net.cuda()
    colours = []
    for begin in range(0, len(rays), chunk):
        colours.append(net(rays[begin : begin + chunk]))
    return torch.cat(colours)
