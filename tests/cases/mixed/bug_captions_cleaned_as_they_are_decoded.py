"""A decoder cleaned at every turn: by tokens, by steps of accumulation, by `del` behind the backward; and the sum that it hid."""

import torch
from torch import nn
from torch.nn import functional


class Captioner(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.words = nn.Embedding(30_000, width)
        self.cell = nn.GRUCell(width, width)
        self.scores = nn.Linear(width, 30_000)

    def forward(self, word, state):
        state = self.cell(self.words(word), state)
        return self.scores(state), state


def decode(captioner, features, words, card):
    loss, state = 0, features
    for at in range(1, words.size(1)):
        with torch.cuda.device(card):
            scores, state = captioner(words[:, at - 1], state)
        loss = loss + functional.cross_entropy(scores, words[:, at])
        del scores
        if at % 10 == 0:
            torch.cuda.empty_cache()  # note: GPU501
    return loss


def train(captioner, loader, optimizer, card, parts=2):
    captioner.to(card).train()
    seen = 0
    for number, (features, words) in enumerate(loader):
        loss = decode(captioner, features.to(card), words.to(card), card) / parts
        loss.backward()
        seen += loss  # expect: GPU101
        if (number + 1) % parts == 0:
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.empty_cache()  # note: GPU501
        del loss
    return seen / len(loader)
