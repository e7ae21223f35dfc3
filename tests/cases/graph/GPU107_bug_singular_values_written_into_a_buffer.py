"""Singular values of a layer, estimated with its weights in the graph, are written into a slice of a buffer in each forward."""

import torch
import torch.nn.functional as F
from torch import nn


class Normed(nn.Linear):
    def __init__(self, inputs, outputs, count=1):
        super().__init__(inputs, outputs)
        for i in range(count):
            self.register_buffer(f"u{i}", torch.randn(1, outputs))
            self.register_buffer(f"sv{i}", torch.ones(1))
        self.count = count

    @property
    def sv(self):
        return [getattr(self, f"sv{i}") for i in range(self.count)]

    def scaled(self):
        values = []
        for i in range(self.count):
            with torch.no_grad():
                v = F.normalize(getattr(self, f"u{i}") @ self.weight)
                u = F.normalize(v @ self.weight.t())
            value = (v @ self.weight.t() @ u.t()).squeeze()
            self.sv[i][:] = value  # expect: GPU107|GPU101
            values.append(value)
        return self.weight / values[0]

    def forward(self, x):
        return F.linear(x, self.scaled(), self.bias)


def train(critic_layers, loader):
    critic = nn.Sequential(*(Normed(512, 512) for _ in range(critic_layers))).cuda()
    opt = torch.optim.Adam(critic.parameters(), betas=(0, 0.9))
    for x in loader:
        opt.zero_grad()
        F.softplus(-critic(x.cuda())).mean().backward()
        opt.step()
