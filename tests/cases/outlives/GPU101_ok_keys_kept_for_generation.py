"""An attention layer keeps the keys of the tokens before in a buffer, and reads them back at once."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        self.q, self.k, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.register_buffer("kept", torch.zeros(8, longest, width), persistent=False)

    def forward(self, x, start, mask):
        n, length, _ = x.shape
        k = self.norm(self.k(x))
        self.kept[:n, start : start + length] = k
        scores = torch.einsum("bqd,bkd->bqk", self.q(x), self.kept[:n, : start + length])
        if mask is not None:
            scores += mask
        return scores.topk(4, dim=-1)[1]
