"""torchmetrics runs `update` with grad off, so that a sum of what is computed there has no graph."""

import torch
import torch.nn.functional as F
import torchmetrics


class Perplexity(torchmetrics.Metric):
    full_state_update = False

    def __init__(self, pad):
        super().__init__()
        self.pad = pad
        self.add_state("nll", default=torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("tokens", default=torch.tensor(0), dist_reduce_fx="sum")

    def update(self, logits, target):
        nll = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=self.pad, reduction="sum")
        self.nll += nll
        self.tokens += (target != self.pad).sum()

    def compute(self):
        return torch.exp(self.nll / self.tokens)
