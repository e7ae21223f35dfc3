"""Whoever holds a network may take it to the host, and nowhere else."""

import torch
from torch import nn


class OnTheHost:
    def __init__(self, words, tags):
        self.network = nn.Sequential(nn.Embedding(words, 512), nn.Linear(512, tags))

    def cpu(self):
        self.network = self.network.cpu()

    @torch.no_grad()
    def tags(self, loader, names):
        for words in loader:
            best = self.network(words).argmax(-1)
            print([names[one.item()] for one in best])
