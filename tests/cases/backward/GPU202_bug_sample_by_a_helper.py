"""A helper makes the sample, and the critic gets it without its graph; a penalty wants gradients of the pictures alone."""

import torch
import torch.nn.functional as F
from torch import nn


def drawn(generator, many):
    return generator(torch.randn(many, 64, 1, 1, device="cuda"))


def penalty(pictures, scores):
    (slope,) = torch.autograd.grad(scores.sum(), pictures, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()


def generator():
    return nn.Sequential(nn.ConvTranspose2d(64, 256, 4), nn.ReLU(), nn.ConvTranspose2d(256, 3, 4, 2, 1)).cuda()


def train(loader):
    made_by, judge = generator(), nn.Sequential(nn.Conv2d(3, 64, 4, 2), nn.Flatten(), nn.LazyLinear(1)).cuda()
    of_judge, of_maker = torch.optim.Adam(judge.parameters()), torch.optim.Adam(made_by.parameters())
    for real in loader:
        real = real.cuda().requires_grad_()
        scores = judge(real)
        fake = drawn(made_by, len(real))  # expect: GPU202
        loss = F.softplus(judge(fake.clone().detach())).mean() + F.softplus(-scores).mean() + penalty(real, scores)
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()

        shown = drawn(made_by, len(real))
        of_maker.zero_grad()
        F.softplus(-judge(shown)).mean().backward()
        of_maker.step()
