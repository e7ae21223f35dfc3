"""Texts go through the tokenizer slice by slice: nothing of them is on the device before."""

import torch
from torch import nn


@torch.no_grad()
def embed(net: nn.Module, tokenize, texts, device="cuda"):
    net.to(device).eval()
    found = []
    for start in range(0, len(texts), 64):
        tokens = tokenize(texts[start : start + 64], device=device)
        found.append(net(tokens))  # low: GPU102
    return torch.cat(found).cpu().numpy()
