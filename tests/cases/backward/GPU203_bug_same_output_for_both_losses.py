"""What the discriminator says of the sample is asked once and serves both losses: cut, the generator learns nothing."""

import torch
import torch.nn.functional as F
from torch import nn

G = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
D = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt_g = torch.optim.SGD(G.parameters(), lr=0.1)
opt_d = torch.optim.SGD(D.parameters(), lr=0.1)


def train(loader):
    for real in loader:
        fake = G(torch.randn(len(real), 8))
        opinion = D(fake)  # expect: GPU203
        loss_d = F.softplus(-D(real)).mean() + F.softplus(opinion).mean()
        loss_g = F.softplus(-opinion).mean()
        opt_d.zero_grad()
        loss_d.backward(retain_graph=True)
        opt_d.step()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
