"""Scores over a vocabulary whose size is written as a number."""

import torch
import torch.nn.functional as F
from torch import nn


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(32_000, 512)
        self.layers = nn.GRU(512, 512, batch_first=True)
        self.scores = nn.Linear(512, out_features=32_000)

    def forward(self, tokens):
        return self.scores(self.layers(self.words(tokens))[0])


def shown_by_the_view(model, loader, optimizer):
    for tokens, following in loader:
        logits = model(tokens.cuda())
        loss = F.cross_entropy(logits.view(-1, 50257), following.cuda().view(-1))  # expect: GPU401
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def shown_by_the_network(loader):
    model = Writer().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for tokens, following in loader:
        logits = model(tokens.cuda())
        loss = F.cross_entropy(logits.transpose(1, 2), following.cuda())  # expect: GPU401
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
