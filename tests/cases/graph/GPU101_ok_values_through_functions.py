import torch
from torch import nn


def to_number(v):
    return v.item() if torch.is_tensor(v) else float(v)


def detach_all(d):
    return {k: v.detach() for k, v in d.items()}


def losses(net, x, y):
    out = net(x)
    return {"ce": nn.functional.cross_entropy(out, y), "z": out.logsumexp(1).pow(2).mean()}


def train(net, loader, opt):
    total, sums = 0.0, {}
    for x, y in loader:
        parts = losses(net, x.cuda(), y.cuda())
        loss = parts["ce"] + 1e-4 * parts["z"]
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += to_number(loss)
        for k, v in detach_all(parts).items():
            sums[k] = sums.get(k, 0.0) + v
    return total, sums
