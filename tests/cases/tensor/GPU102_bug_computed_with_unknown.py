"""Without grad, what an output is computed with is a tensor, whatever the other operand is: masks, prompts, indices."""

import torch
from torch import nn


@torch.no_grad()
def masked(net: nn.Module, loader):
    kept, compared = [], []
    for batch in loader:
        out = net(batch["x"].cuda())
        kept.append(out * batch["mask"].cuda().unsqueeze(-1))  # low: GPU102
        compared.append(torch.where(batch["known"].cuda(), out, 0))  # low: GPU102
    return torch.cat(kept).cpu(), torch.cat(compared).cpu()


def first_token(output):
    return output.last_hidden_state[:, 0]


@torch.no_grad()
def encoded(net: nn.Module, loader):
    kept = []
    for batch in loader:
        kept.append(first_token(net(**batch.to("cuda"))))  # low: GPU102
    return torch.cat(kept).cpu()
