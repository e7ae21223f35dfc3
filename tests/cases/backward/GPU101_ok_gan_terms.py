import torch
import torch.nn as nn


def d_step(D, G, opt_d, real, nz, bce):
    b = real.size(0)
    ones = torch.ones(b, 1, device=real.device)
    zeros = torch.zeros(b, 1, device=real.device)
    with torch.no_grad():
        fake = G(torch.randn(b, nz, device=real.device))
    err_d = 0
    err_d += bce(D(real), ones)
    err_d += bce(D(fake), zeros)
    opt_d.zero_grad()
    err_d.backward()
    opt_d.step()
    return err_d.item()


def g_step(D, G, opt_g, b, nz, bce, dev):
    fake = G(torch.randn(b, nz, device=dev))
    err_g = bce(D(fake), torch.ones(b, 1, device=dev))
    opt_g.zero_grad()
    err_g.backward()
    opt_g.step()
    return err_g.item()


def train(D, G, loader, nz=100, dev="cuda"):
    bce = nn.BCEWithLogitsLoss()
    opt_d = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999))
    opt_g = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999))
    hist = {"d": [], "g": []}
    for real, _ in loader:
        hist["d"].append(d_step(D, G, opt_d, real.to(dev), nz, bce))
        hist["g"].append(g_step(D, G, opt_g, real.size(0), nz, bce, dev))
    return hist
