"""How large a vocabulary is, its file says: the network embeds its words, and scores each of them."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.cells = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        hidden, _ = self.cells(self.embed(tokens))
        return self.head(hidden)


class Translator(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, tokens):
        return self.decoder(tokens)


class Tagger(nn.Module):
    def __init__(self, words, tags, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.cells = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, tags)

    def forward(self, tokens):
        hidden, _ = self.cells(self.embed(tokens))
        return self.head(hidden)


def translate(loader, words, optimizer):
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    net = Translator(nn.Embedding(words, 512), Decoder(words, 512)).cuda()
    for tokens in loader:
        tokens = tokens.cuda()
        scores = net(tokens[:, :-1])
        loss = criterion(scores.reshape(-1, scores.shape[-1]), tokens[:, 1:].reshape(-1))  # expect: GPU401
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tag(loader, words, tags, optimizer):
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    net = Tagger(words, tags, 512).cuda()
    for tokens, wanted in loader:
        scores = net(tokens.cuda())
        loss = criterion(scores.reshape(-1, scores.shape[-1]), wanted.cuda().reshape(-1))  # low: GPU401
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
