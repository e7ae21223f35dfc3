import torch
from torch import nn


def dice(pred, target):
    p = (pred > 0).float()
    return 2 * (p * target).sum() / (p.sum() + target.sum() + 1e-6)


def train(net, loader, opt):
    score, norms = 0.0, 0.0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        out = net(x)
        loss = nn.functional.binary_cross_entropy_with_logits(out, y)
        opt.zero_grad()
        loss.backward()
        norms += nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        score += dice(out, y)
    return float(score) / len(loader), float(norms) / len(loader)
