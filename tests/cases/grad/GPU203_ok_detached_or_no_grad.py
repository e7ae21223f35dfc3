import torch
import torch.nn.functional as F


def d_step(G, D, opt_d, real, z):
    fake = G(z)
    loss = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()
    return fake


def d_step_cheaper(G, D, opt_d, real, z):
    with torch.no_grad():
        fake = G(z)
    loss = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()


def g_step(D, opt_g, fake):
    loss = F.softplus(-D(fake)).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()


def train(G, D, opt_g, opt_d, loader, nz):
    for real in loader:
        z = torch.randn(len(real), nz, device="cuda")
        g_step(D, opt_g, d_step(G, D, opt_d, real.cuda(), z))
        d_step_cheaper(G, D, opt_d, real.cuda(), z)
