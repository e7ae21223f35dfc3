"""What trains a client's network brings it to the host before it hands it out, so a copy of its weights is there as well."""

import copy

import torch
from torch import nn


class Client:
    def __init__(self, loader):
        self.loader = loader

    def train(self, net):
        net.cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x, y in self.loader:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.to("cpu")
        return net


def rounds(net, loaders, average):
    weights = []
    for loader in loaders:
        client = Client(loader)
        trained = client.train(copy.deepcopy(net))
        weights.append(copy.deepcopy(trained.state_dict()))
    return average(weights)
