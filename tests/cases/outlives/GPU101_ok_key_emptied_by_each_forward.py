"""The key is made once for all steps of one decoding, and the forward of the whole empties it before the next."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.project = nn.Linear(size, size)
        self.key = None

    def reset(self):
        self.key = None

    def forward(self, query, features):
        if self.key is None:
            self.key = torch.tanh(self.project(features))
        weights = torch.softmax(torch.bmm(self.key, query.unsqueeze(2)), 1)
        return (weights * features).sum(1)


class Recognizer(nn.Module):
    def __init__(self, encoder, size):
        super().__init__()
        self.encoder, self.attention = encoder, Attention(size)
        self.cell, self.head = nn.GRUCell(size, size), nn.Linear(size, 100)

    def forward(self, sound, steps):
        features = self.encoder(sound)
        self.attention.reset()
        state, found = features[:, 0], []
        for _ in range(steps):
            state = self.cell(self.attention(state, features), state)
            found.append(self.head(state))
        return torch.stack(found, 1)


def train(net, loader, opt):
    net.cuda()
    for sound, wanted in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(sound.cuda(), 20).transpose(1, 2), wanted.cuda()).backward()
        opt.step()
