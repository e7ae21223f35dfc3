"""Whoever holds a network may take it to the GPU and back, each in a method of its own: it has been there, and what it gives is read one by one."""

import torch
from torch import nn


class Tagger:
    def __init__(self, words, tags):
        self.network = nn.Sequential(nn.Embedding(words, 512), nn.Linear(512, tags))

    def cuda(self):
        self.network = self.network.cuda()

    def cpu(self):
        self.network = self.network.cpu()

    @torch.no_grad()
    def tags(self, loader, names):
        for words in loader:
            best = self.network(words).argmax(-1)
            print([names[one.item()] for one in best])  # note: GPU504
