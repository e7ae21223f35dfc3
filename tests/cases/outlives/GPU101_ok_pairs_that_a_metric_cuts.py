"""A metric that takes its scores out of a pair, and cuts them."""

import torch
from ignite.metrics import Metric


class CutError(Metric):
    def reset(self):
        self._scores = []

    def update(self, output):
        scores, _ = output
        self._scores.append(scores.detach().to(dtype=torch.float32))

    def compute(self):
        return torch.median(torch.cat(self._scores)).item()
