"""A whole program in which no file speaks of a GPU: its evaluation wastes memory of the host at most."""
# file: networks.py
from torch import nn


class Eye(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 64, 3)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.look(x).mean((2, 3)))
# file: evaluate.py
import torch
from networks import Eye


def main(loader):
    net = torch.load("net.pt")
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x).argmax(1) == y).sum().item()  # low: GPU201
    return right


if __name__ == "__main__":
    main(torch.load("batches.pt"))
