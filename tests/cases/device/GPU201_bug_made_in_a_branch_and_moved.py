"""The network is made where weights are given, and moved to the GPU in the same branch."""

# file: look.py
import torch
from net import Net


def look(weights, loader):
    net = None
    if weights is not None:
        saved = torch.load(weights, map_location="cpu")
        net = Net(**saved["settings"])
        net.load_state_dict(saved["net"])
        net.cuda()
        net.eval()
    for x, y in loader:
        print(x.min(), x.max(), y)
        if net is not None:
            print(net(x.cuda()).argmax(1))  # expect: GPU201
# file: net.py
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, 10, 3), nn.Flatten())

    def forward(self, x):
        return self.layers(x)
