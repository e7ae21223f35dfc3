"""Containers that nothing here reads, of what need not be a tensor, or that somebody else reads."""

import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)


def texts(model, loader):
    found = []
    with torch.no_grad():
        for x in loader:
            found.append(model(x.cuda()))  # of a model unseen, which may give texts
    return len(loader)


def read_by_a_closure(loader):
    coder, codes = Coder(8).cuda(), []

    def look():
        return torch.cat(codes) @ torch.cat(codes).T

    with torch.no_grad():
        for x in loader:
            codes.append(coder(x.cuda()))
    return look


def handed_on(loader, sink):
    coder, codes = Coder(8).cuda(), []
    sink.attach(codes)
    with torch.no_grad():
        for x in loader:
            codes.append(coder(x.cuda()))
