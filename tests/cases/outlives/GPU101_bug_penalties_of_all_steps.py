"""The penalty of every step, whose graph is one for a second derivative, is kept for a figure."""

import torch
from torch import nn


def penalty(critic, real):
    real = real.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return slope.flatten(1).pow(2).sum(1).mean()


def train(critic: nn.Module, generator: nn.Module, loader):
    critic.cuda(), generator.cuda()
    opt = torch.optim.Adam(critic.parameters(), 1e-4, (0.0, 0.99))
    extra = []
    for step, real in enumerate(loader):
        with torch.no_grad():
            fake = generator(torch.randn(len(real), 128, device="cuda"))
        loss = nn.functional.softplus(critic(fake)).mean() + nn.functional.softplus(-critic(real.cuda())).mean()
        gp = penalty(critic, real.cuda())
        opt.zero_grad()
        (loss + 5 * gp).backward()
        opt.step()
        extra.append(gp)  # expect: GPU101
        if step % 1000 == 0:
            print(step, torch.stack(extra).mean().item())
