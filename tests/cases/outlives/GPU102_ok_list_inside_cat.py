"""Joined lists that are short, or of one batch."""

import torch


@torch.no_grad()
def members(models, x):
    return torch.stack([model(x.cuda()) for model in models]).cpu()


@torch.no_grad()
def pieces(model: torch.nn.Module, signal: torch.Tensor, length):
    signal = signal.cuda()
    return torch.cat([model(signal[:, a : a + length]) for a in range(0, signal.size(1), length)], 1).cpu()


@torch.no_grad()
def in_chunks(model: torch.nn.Module, x, batch_size=64):
    return torch.cat([model(part) for part in x.split(batch_size)])
