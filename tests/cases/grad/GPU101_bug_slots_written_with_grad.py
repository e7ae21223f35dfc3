"""The same slots, written with grad on: the tensor of difficulties takes the graph of every step in."""

import torch
import torch.nn.functional as F


def train(net: torch.nn.Module, data, opt, steps):
    net.cuda()
    difficulty = torch.full((len(data),), 10.0, device="cuda")
    for _ in range(steps):
        rows = torch.multinomial(difficulty.detach(), 256)
        x, y = data[rows.cpu()]
        each = F.cross_entropy(net(x.cuda()), y.cuda(), reduction="none")
        opt.zero_grad()
        each.mean().backward()
        opt.step()
        difficulty[rows] = each.clamp(min=1e-3)  # expect: GPU101|GPU107
    print(difficulty.topk(100).indices.tolist())
