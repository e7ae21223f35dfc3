"""A network is held by an object that is none, and moved where an option says: what it gives is there, and is read one by one."""

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


class Decoder:
    def __init__(self, state, vocabulary, cuda=True):
        network = Writer(len(vocabulary), 512)
        network.load_state_dict(state)
        self.device = torch.device("cuda" if cuda else "cpu")
        self.network = network.to(self.device)
        self.vocabulary = vocabulary

    @torch.no_grad()
    def __call__(self, words, hidden):
        found, _ = self.network.write(words, hidden)
        texts = []
        for row in range(len(words)):
            if found[row] == 0:  # note: GPU504
                break
            texts.append(self.vocabulary[found[row].item()])
        return texts


def main(state, vocabulary, loader, arguments):
    decoder = Decoder(state, vocabulary, arguments.cuda)
    for words, hidden in loader:
        print(decoder(words, hidden))
