import torch


def r1_penalty(D, real):
    real = real.cuda().requires_grad_(True)
    out = D(real).sum()
    out.backward(create_graph=True)  # expect: GPU302
    return real.grad.pow(2).flatten(1).sum(1).mean()


def train(D, loader, opt):
    for x in loader:
        loss = 10 * r1_penalty(D, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
