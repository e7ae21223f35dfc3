"""A divergence that differentiates the critic's output with respect to the sample: a detached one would raise."""

import torch
from torch import nn
from torch.autograd import Variable

generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters())
opt_c = torch.optim.Adam(critic.parameters())


def slope(scores, points):
    (grads,) = torch.autograd.grad(scores.sum(), points, create_graph=True)
    return grads.pow(2).sum(1).pow(3)


def train(loader):
    for real in loader:
        points = Variable(real, requires_grad=True)
        sample = generator(torch.randn(len(real), 8))
        on_real = critic(points)
        on_fake = critic(sample)  # expect: GPU203
        penalty = (slope(on_real, points) + slope(on_fake, sample)).mean()
        opt_c.zero_grad()
        (on_fake.mean() - on_real.mean() + penalty).backward()
        opt_c.step()

        opt_g.zero_grad()
        (-critic(generator(torch.randn(len(real), 8))).mean()).backward()
        opt_g.step()
