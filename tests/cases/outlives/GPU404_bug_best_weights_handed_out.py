"""What a training hands out as the best are the network's own tensors, which it has gone on training."""

# file: client.py
import torch
from torch import nn


class Client:
    def __init__(self, loader):
        self.loader = loader

    def train(self, net, epochs, score):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        lowest, best = 1e9, None
        for _ in range(epochs):
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            current = score(net)
            if current < lowest:
                lowest = current
                best = net.state_dict()  # expect: GPU404
        return best, lowest


# file: main.py
from client import Client
from torch import nn


def main(loader, score):
    net = nn.Linear(512, 512).cuda()
    weights, lowest = Client(loader).train(net, 10, score)
    net.load_state_dict(weights)
    return lowest
