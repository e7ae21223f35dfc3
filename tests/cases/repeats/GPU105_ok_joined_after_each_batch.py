"""The join is part of the loop: each batch starts its own lists."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
batches = [torch.rand(16, 8).cuda() for _ in range(10)]
seen = []


def keep(module, args, output):
    seen.append(output.cpu())


net[1].register_forward_hook(keep)
for batch in batches:
    net(batch).sum().backward()
    print(torch.cat(seen).mean().item())
    seen = []
