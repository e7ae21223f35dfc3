"""Sums that leave one number of each sample, whatever was multiplied, here or in a helper."""

import torch


def agreement(output, target):
    return (output * target).sum(1)


def energy(output, weights):
    return (output * weights).pow(2).mean() * weights


@torch.no_grad()
def with_a_helper(model: torch.nn.Module, loader):
    kept, more = [], []
    for x, target in loader:
        out = model(x.cuda())
        kept.append(agreement(out, target.cuda()))
        more.append(energy(out, 0.5))
    return torch.cat(kept).cpu(), torch.stack(more).cpu()


@torch.no_grad()
def in_place(model: torch.nn.Module, loader):
    kept = []
    for x, target in loader:
        score = (model(x.cuda()) * target.cuda()).sum(dim=1)
        kept.append(score)
    return torch.cat(kept).cpu()
