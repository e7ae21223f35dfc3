import torch
from torch import nn


def train(net, loader, opt, accum=8, device="cuda"):
    crit = nn.CrossEntropyLoss()
    it = iter(loader)
    for update in range(len(loader) // accum):
        opt.zero_grad()
        total = 0.0
        for _ in range(accum):
            x, y = next(it)
            out = net(x.to(device))
            total = total + crit(out, y.to(device))  # expect: GPU303
        total = total / accum
        total.backward()
        opt.step()
        print(update, total.item())
