"""Networks of one class, of which the optimizers have but one: each of the others is told."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Shift(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.by = nn.Parameter(start)

    def forward(self, x):
        return x + self.by


class Policy(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.first, self.mean = nn.Linear(n, 128), nn.Linear(128, m)
        self.spread = Shift(torch.zeros(m))

    def forward(self, x):
        mean = self.mean(torch.tanh(self.first(x)))
        return mean, self.spread(torch.zeros_like(mean))


class Clipped:
    def __init__(self, n, m):
        self.policy, self.before = Policy(n, m).cuda(), Policy(n, m).cuda()
        self.opt = optim.Adam(self.policy.parameters())

    def train(self, seen, done, gain):
        mean, spread = self.policy(seen)
        old, wide = self.before(seen)  # expect: GPU202
        now = torch.distributions.Normal(mean, spread.exp()).log_prob(done)
        then = torch.distributions.Normal(old, wide.exp()).log_prob(done)
        loss = -((now - then).exp() * gain).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def remember(self):
        self.before.load_state_dict(self.policy.state_dict())
