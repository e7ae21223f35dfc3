"""Perplexity over an epoch: computed from logits inside `update`, whose callers are not seen; moving does not cut."""

import math

import torch
import torch.nn.functional as F
from ignite.metrics import Metric


class Perplexity(Metric):
    def __init__(self, pad, output_transform=lambda x: x, device="cpu"):
        self.pad = pad
        super().__init__(output_transform=output_transform, device=device)

    def reset(self):
        self._nll = torch.zeros((), device=self._device)
        self._tokens = 0
        super().reset()

    def update(self, output):
        logits, target = output
        nll = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=self.pad, reduction="sum")
        self._nll += nll.to(self._device)  # low: GPU101
        self._tokens += (target != self.pad).sum().item()

    def compute(self):
        return math.exp(self._nll.item() / self._tokens)
