"""The cache is emptied after every one of the steps."""

import torch


def attack(net: torch.nn.Module, loader, radius=8 / 255, steps=400):
    net.cuda().eval().requires_grad_(False)
    fooled = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        change = torch.zeros_like(x, requires_grad=True)
        opt = torch.optim.Adam([change], 1e-2)
        for _ in range(steps):
            loss = -torch.nn.functional.cross_entropy(net(x + change.clamp(-radius, radius)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            torch.cuda.empty_cache()  # expect: GPU501
        with torch.no_grad():
            fooled += (net(x + change.clamp(-radius, radius)).argmax(1) != y).sum().item()
    print(fooled / len(loader.dataset))
