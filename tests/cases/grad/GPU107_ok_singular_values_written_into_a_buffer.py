"""The buffer is written under no_grad; the value that divides the weights keeps its graph."""

import torch
import torch.nn.functional as F
from torch import nn


class Normed(nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.register_buffer("u", torch.randn(1, outputs))
        self.register_buffer("sv", torch.ones(1))

    def scaled(self):
        with torch.no_grad():
            v = F.normalize(self.u @ self.weight)
            u = F.normalize(v @ self.weight.t())
        value = (v @ self.weight.t() @ u.t()).squeeze()
        if self.training:
            with torch.no_grad():
                self.u.copy_(u)
                self.sv[:] = value
        return self.weight / value

    def forward(self, x):
        return F.linear(x, self.scaled(), self.bias)


def train(critic_layers, loader):
    critic = nn.Sequential(*(Normed(512, 512) for _ in range(critic_layers))).cuda()
    opt = torch.optim.Adam(critic.parameters(), betas=(0, 0.9))
    for x in loader:
        opt.zero_grad()
        F.softplus(-critic(x.cuda())).mean().backward()
        opt.step()
