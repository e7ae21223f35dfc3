import torch
from torch import nn, optim


def train(G, D, loader, nz, device):
    bce = nn.BCEWithLogitsLoss()
    opt_g, opt_d = optim.Adam(G.parameters(), 2e-4), optim.Adam(D.parameters(), 2e-4)
    for real, _ in loader:
        real = real.to(device)
        fake = G(torch.randn(len(real), nz, device=device))
        pr = D(real)
        pf = D(fake)  # expect: GPU203
        d_loss = bce(pr, torch.ones_like(pr)) + bce(pf, torch.zeros_like(pf))
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        fake = G(torch.randn(len(real), nz, device=device))
        p = D(fake)  # low: GPU202
        g_loss = bce(p, torch.ones_like(p))
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
