from copy import deepcopy

import torch
from torch import nn


def swa(net: nn.Module, loader, opt, epochs):
    net.to("cuda")
    snaps = []
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(net(x.to("cuda")), y.to("cuda")).backward()
            opt.step()
        snaps.append(deepcopy(net.state_dict()))  # expect: GPU404
    return {k: torch.stack([s[k].float() for s in snaps]).mean(0) for k in snaps[0]}
