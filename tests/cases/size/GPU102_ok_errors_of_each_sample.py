"""One number for each sample: what is left of a difference when it is averaged."""

import torch
import torch.nn.functional as F
from torch import nn


@torch.no_grad()
def errors(net: nn.Module, loader):
    kept, others, named = [], [], []
    for batch in loader:
        x = batch["x"].cuda()
        out = net(x)
        kept.append(((out - x) ** 2).mean(1))
        others.append(F.mse_loss(out, x, reduction="none").mean(dim=(1, 2, 3)))
        apart = (out - x).abs()
        error = apart.flatten(1).mean(dim=1)
        named.append(error)
    return torch.cat(kept).cpu(), torch.cat(others).cpu(), torch.cat(named).cpu()
