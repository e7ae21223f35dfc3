"""`forward` is left to subclasses, and called by name."""

import torch
from torch import nn


class Encoder(nn.Module):
    def forward(self, x):
        raise NotImplementedError

    @torch.no_grad()
    def encode_all(self, loader, device="cuda"):
        self.eval()
        vectors = []
        for x in loader:
            vectors.append(self.forward(x.to(device)))  # low: GPU102
        return torch.cat(vectors).cpu().numpy()
