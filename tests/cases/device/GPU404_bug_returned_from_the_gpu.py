"""The same, but only now and then."""

import copy

import torch
from torch import nn


class Client:
    def __init__(self, loader, spare):
        self.loader, self.spare = loader, spare

    def train(self, net):
        net.cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x, y in self.loader:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if self.spare:
            net.to("cpu")
        return net


def rounds(net, loaders, spare, average):
    weights = []
    for loader in loaders:
        client = Client(loader, spare)
        trained = client.train(copy.deepcopy(net))
        weights.append(copy.deepcopy(trained.state_dict()))  # expect: GPU404
    return average(weights)
