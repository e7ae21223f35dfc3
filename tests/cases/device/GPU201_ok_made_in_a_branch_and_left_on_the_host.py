"""A look at data and what a network says of it: the network is made where weights are given, and never moved."""

# file: look.py
import torch
from net import Net


def look(weights, loader):
    net = None
    if weights is not None:
        saved = torch.load(weights, map_location="cpu")
        net = Net(**saved["settings"])
        net.load_state_dict(saved["net"])
        net.eval()
    for x, y in loader:
        print(x.min(), x.max(), y)
        if net is not None:
            print(net(x).argmax(1))  # low: GPU201
# file: train.py
import torch
from net import Net


def train(loader):
    net = Net(64).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
# file: net.py
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, 10, 3), nn.Flatten())

    def forward(self, x):
        return self.layers(x)
