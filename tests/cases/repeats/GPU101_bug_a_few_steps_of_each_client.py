"""Sums that are made anew for each client and held over its own few steps, beside one over all steps of a run."""

import torch
from torch import nn
from torch.nn import functional as F


class Client:
    def __init__(self, net: nn.Module, data, local_steps):
        self.net = net.cuda()
        self.data = data
        self.local_steps = local_steps
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self):
        total = 0
        for _ in range(self.local_steps):
            x, y = self.data.draw()
            loss = F.cross_entropy(self.net(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss  # low: GPU101
        print(total / self.local_steps)


def serve(nets, data, rounds, local_steps):
    clients = [Client(net, data, local_steps) for net in nets]
    for _ in range(rounds):
        for client in clients:
            client.train()


def run(net: nn.Module, data, steps):
    optimizer = torch.optim.SGD(net.cuda().parameters(), lr=0.1)
    total = 0
    for step in range(steps):
        x, y = data.draw()
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss  # expect: GPU101
    print(total / steps)
