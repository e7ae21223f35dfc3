"""A loader that gives one picture at a time, by the default of the command line or in the file that hands it over, and a network of
a few narrow convolutions: it holds, and nothing shows that it is much."""

# file: looking.py
import torch


def look(net, loader, number):
    found = []
    for _ in range(number):
        x, _ = next(iter(loader))
        found.append(net(x.cuda()).detach().cpu())  # low: GPU201
    return found


def look_through(net, loader):
    net.eval()
    for x, path in loader:
        torch.save(net(x.cuda()).argmax(1).cpu(), path[0])  # low: GPU201
# file: networks.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[nn.Conv2d(16, 16, 3, padding=1) for _ in range(6)])
        self.head = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())
# file: main.py
import argparse

import torch
from looking import look, look_through
from networks import Net
from pictures import Pictures
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=1)
args = parser.parse_args()

ONE = 1

if __name__ == "__main__":
    net = Net().cuda()
    net.load_state_dict(torch.load("net.pth", map_location="cpu"))
    look(net, DataLoader(Pictures("test"), batch_size=ONE), 100)
    look_through(net, DataLoader(Pictures("all"), batch_size=args.batch_size))
