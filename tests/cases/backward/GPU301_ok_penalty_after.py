import torch
from torch import autograd, nn


def critic_step(D, opt, real, fake, lam=10.0):
    b = real.size(0)
    opt.zero_grad()
    w_loss = D(fake).mean() - D(real).mean()
    w_loss.backward()
    eps = torch.rand(b, 1, 1, 1, device=real.device)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (g,) = autograd.grad(D(mix).sum(), mix, create_graph=True)
    gp = lam * (g.flatten(1).norm(dim=1) - 1).pow(2).mean()
    gp.backward()
    opt.step()
    return w_loss.item() + gp.item()


def r1_step(D, opt, real, gamma=10.0):
    real = real.requires_grad_(True)
    score = D(real)
    loss = nn.functional.softplus(-score).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    (g,) = autograd.grad(score.sum(), real, create_graph=True)
    r1 = gamma / 2 * g.pow(2).sum((1, 2, 3)).mean()
    r1.backward()
    opt.step()
