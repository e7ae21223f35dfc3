"""Penalties on gradients at several scales are summed into the critic's loss of one step."""

import torch
from torch import nn


def penalty(critic, real):
    real = real.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return slope.flatten(1).pow(2).sum(1).mean()


class MultiScale:
    def __init__(self, critics: nn.ModuleList):
        self.critics = critics.cuda()
        self.opt = torch.optim.Adam(critics.parameters(), 1e-4, (0.0, 0.99))

    def critic_loss(self, pyramids, fakes):
        loss, extra = 0.0, []
        for critic, real, fake in zip(self.critics, pyramids, fakes):
            loss += nn.functional.softplus(critic(fake)).mean() + nn.functional.softplus(-critic(real)).mean()
            extra.append(penalty(critic, real))
        return loss + 5 * torch.stack(extra).sum()

    def step(self, pyramids, fakes):
        loss = self.critic_loss([p.cuda() for p in pyramids], [f.cuda() for f in fakes])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()
