import torch
from torch import nn


def step(model, x, y, opt):
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss


def epoch(model, loader, opt):
    losses = [step(model, x, y, opt) for x, y in loader]  # expect: GPU101
    return torch.stack(losses).mean().item()
