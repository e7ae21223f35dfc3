"""Weights that a class makes by itself, of a width in and a width out that no constant says: neither is the number of rows of a table."""

import copy

import torch
from torch import nn


class Spread(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_dim, out_dim).normal_())
        self.bias = nn.Parameter(torch.zeros(out_dim))

    def forward(self, x, graph):
        return torch.spmm(graph, x @ self.weight) + self.bias


class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.first = Spread(settings.inputs, settings.hidden)
        self.last = Spread(settings.hidden, settings.classes)

    def forward(self, x, graph):
        return self.last(self.first(x, graph).relu(), graph)


def train(settings, x, graph, y, rounds):
    net = Net(settings).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    x, graph, y = x.cuda(), graph.cuda(), y.cuda()
    best, least = None, 1e9
    for _ in range(rounds):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x, graph), y)
        loss.backward()
        optimizer.step()
        now = loss.item()  # maybe: GPU505
        if now < least:
            least = now
            best = copy.deepcopy(net)  # low: GPU404
    return best
