"""Metrics that a framework drives: a network's features of each batch, for statistics on the host."""

import torch
from torchvision.models import inception_v3


class Score:
    def prepare(self, device):
        self.network = inception_v3().eval().to(device)
        self.logits = []

    @torch.no_grad()
    def process(self, batch, samples):
        self.logits += list(torch.split(self.network(torch.stack(samples)), 1))  # low: GPU102

    def compute_metrics(self, results):
        return torch.cat(self.logits).cpu().numpy().mean()
