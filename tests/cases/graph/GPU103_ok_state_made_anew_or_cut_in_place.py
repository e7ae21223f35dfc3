"""A state that the training makes anew for each sequence, or cuts where it stands, by the network's own method or in it."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(64, 64), nn.Linear(64, 10)
        self.hidden, self.state = self.init_hidden(), torch.zeros(8, 64, device="cuda")

    def init_hidden(self):
        return torch.zeros(8, 64, device="cuda"), torch.zeros(8, 64, device="cuda")

    def forward(self, x):
        self.hidden = self.cell(x, self.hidden)
        return self.head(self.hidden[0])


class Running(Tagger):
    def forward(self, x):
        self.state.detach_()
        self.state = torch.tanh(self.head.weight.sum() + self.state * x.mean())
        return self.state


def train(loader):
    for model in (Tagger().cuda(), Running().cuda()):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            model.hidden = model.init_hidden()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
