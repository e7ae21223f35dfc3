"""What a forward collects over its layers goes with it; what a run collects over its batches does not."""

import torch
from elsewhere import Output
from torch import nn


class Stack(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count
        self.layers = nn.ModuleList([nn.Linear(2048, 2048) for _ in range(count)])

    def forward(self, x, keep=False):
        states = () if keep else None
        for number in range(self.count):
            layer = self.layers[number]
            if keep:
                states = states + (x,)
            x = layer(x)
        return Output(last=x, states=states)


def collect(loader):
    net = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048)).cuda()
    net.load_state_dict(torch.load("net.pt", map_location="cpu"))
    net.eval()
    states = []
    for x in loader:
        states.append(net(x.cuda()))  # expect: GPU101|GPU201
    return len(states)
