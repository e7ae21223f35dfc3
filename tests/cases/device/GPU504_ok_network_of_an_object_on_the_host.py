"""A network that an object holds is moved to the host, and what it gives is there."""

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, words, wide):
        super().__init__()
        self.embedding = nn.Embedding(words, wide)
        self.cell = nn.GRUCell(wide, wide)
        self.head = nn.Linear(wide, words)

    def step(self, word, hidden):
        hidden = self.cell(self.embedding(word), hidden)
        return self.head(hidden).argmax(1), hidden


class Writer(Base):
    def write(self, words, hidden):
        found, hidden = self.step(words, hidden)
        return found, hidden


class Reader:
    def __init__(self, state, vocabulary):
        self.network = Writer(len(vocabulary), 512).to("cpu")
        self.network.load_state_dict(state)

    @torch.no_grad()
    def __call__(self, words, hidden):
        found, _ = self.network.write(words, hidden)
        return [found[row].item() for row in range(len(words))]


def main(state, vocabulary, loader):
    reader = Reader(state, vocabulary)
    for words, hidden in loader:
        print(reader(words, hidden))
