"""The discriminator's step goes through a graph of the caller's, who goes through it once more."""

import torch
from torch import nn

D = nn.Linear(4, 1).cuda()
G = nn.Linear(4, 4).cuda()
opt_d = torch.optim.SGD(D.parameters(), lr=0.1)
opt_g = torch.optim.SGD(G.parameters(), lr=0.1)


def step(real, made):
    loss = D(made).mean() - D(real).mean()  # maybe: GPU203
    opt_d.zero_grad()
    loss.backward(retain_graph=True)
    opt_d.step()


def train(loader):
    for real in loader:
        made = G(torch.randn_like(real))
        step(real, made)
        loss = -D(made).mean()
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
