import torch
from torch import nn


def add(stats, name, value):
    stats[name] = stats.get(name, 0.0) + value


def train(net, loader, opt):
    stats = {}
    for x, y in loader:
        out = net(x.cuda())
        nll = nn.functional.cross_entropy(out, y.cuda())
        ent = -(out.softmax(1) * out.log_softmax(1)).sum(1).mean()
        opt.zero_grad()
        (nll - 0.01 * ent).backward()
        opt.step()
        add(stats, "nll", nll.item())
        add(stats, "ent", ent)  # expect: GPU101|GPU104
    return {k: float(v) for k, v in stats.items()}
