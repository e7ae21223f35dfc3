"""Of two networks that it may be, one takes pictures: what it saves is not just rows."""

import torch
from torch import nn


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 512, 3), nn.ReLU())
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Scores(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(x)


class Runner:
    def __init__(self, args, loader):
        self.loader = loader
        if args.whole:
            self.net = Features().cuda()
        else:
            self.net = Scores(args.width).cuda()

    def evaluate(self):
        self.net.eval()
        right = 0
        for x, y in self.loader:
            scores = self.net(x.cuda())  # expect: GPU201
            right += (scores.argmax(1).cpu() == y).sum().item()
        return right
