"""Slots of a plain tensor, written under no_grad in the training loop, from losses that have their graphs."""

import torch
import torch.nn.functional as F


def train(net: torch.nn.Module, data, opt, steps):
    net.cuda()
    difficulty = torch.full((len(data),), 10.0, device="cuda")
    for _ in range(steps):
        rows = torch.multinomial(difficulty, 256)
        x, y = data[rows.cpu()]
        each = F.cross_entropy(net(x.cuda()), y.cuda(), reduction="none")
        opt.zero_grad()
        each.mean().backward()
        opt.step()
        with torch.no_grad():
            difficulty[rows] = each.clamp(min=1e-3)
    print(difficulty.topk(100).indices.tolist())
