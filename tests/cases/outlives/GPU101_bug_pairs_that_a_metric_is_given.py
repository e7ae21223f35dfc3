"""A metric that takes its scores out of a pair and joins them keeps what whoever calls has not cut."""

import torch
from ignite.metrics import Metric


class MedianError(Metric):
    def reset(self):
        self._scores = []

    def update(self, output):
        scores, _ = output
        self._scores.append(scores.to(dtype=torch.float32))  # low: GPU101

    def compute(self):
        return torch.median(torch.cat(self._scores)).item()
