"""Maps of a whole data set go to a method that piles them up: they are on the host by then, or become one number each."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Outline(nn.Module):
    def __init__(self):
        super().__init__()
        self.end = nn.Conv2d(1, 12, 3, padding=1)

    def forward(self, scan):
        return self.end(scan)


class Reader:
    def __init__(self, net, scans):
        self.net, self.scans = net.cuda().eval(), DataLoader(scans, batch_size=16)

    @torch.no_grad()
    def read(self):
        self.pile, self.means = [], []
        for scan, _ in self.scans:
            self.found = self.net(scan.cuda()).cpu()
            self.take()
        return torch.cat(self.pile).numpy(), self.means

    def take(self):
        self.pile.append(self.found)
        self.means.append(self.found.mean().item())


if __name__ == "__main__":
    from scans import Knees

    Reader(Outline(), Knees()).read()
