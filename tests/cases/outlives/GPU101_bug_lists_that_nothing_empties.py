"""A list that a forward fills and nobody empties keeps all forwards, whoever reads it."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(nn.TransformerEncoderLayer(768, 12) for _ in range(12)))
        self.results = []

    def forward(self, rows):
        for block in self.blocks.children():
            rows = block(rows)
            self.results.append(rows)  # low: GPU101
        return rows


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(768, 10)

    @property
    def encoder_results(self):
        return self.encoder.results

    def forward(self, rows):
        return self.head(self.encoder(rows).mean(0))
