import torch
from torch import nn


def grad_norms(model, shared, losses):
    norms = []
    for loss in losses:
        model.zero_grad()
        loss.backward(retain_graph=True)
        norms.append(shared.weight.grad.norm().item())  # maybe: GPU504
    return norms


def train(model, loader, opt):
    ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()
    for x, y, z in loader:
        a, b = model(x.cuda())
        losses = [ce(a, y.cuda()), mse(b, z.cuda())]
        norms = grad_norms(model, model.trunk, losses)
        w = [n / sum(norms) for n in norms]
        opt.zero_grad()
        sum(wi * li for wi, li in zip(w, losses)).backward()
        opt.step()
