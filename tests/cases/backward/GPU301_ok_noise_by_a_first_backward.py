"""A loss goes backward for the noise that it adds to its embeddings, and gives back a loss of the same graph: whoever trains goes through that."""

import torch
from torch import nn


class Noisy(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.embed, self.encoder, self.head = nn.Embedding(30000, 768), encoder, nn.Linear(768, 2)

    def forward(self, tokens, labels):
        seen = self.embed(tokens)
        seen.retain_grad()
        first = nn.functional.cross_entropy(self.head(self.encoder(seen)), labels)
        first.backward(retain_graph=True)
        noise = 0.1 * seen.grad.detach()
        self.zero_grad()
        return first + nn.functional.cross_entropy(self.head(self.encoder(seen + noise)), labels)
