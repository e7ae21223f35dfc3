"""The class is found by a name that is put together, and its step is what the class it derives from calls."""
# file: train.py
import argparse

import runners

parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="dense")
args = parser.parse_args()

if __name__ == "__main__":
    module = getattr(runners, args.kind)
    runner = getattr(module, args.kind + "Runner")("cuda")
    runner.run(module.loader())
# file: runners/base.py
import torch


class Runner:
    def __init__(self, device):
        self.build(device)
        self.opt = torch.optim.Adam(self.net.parameters())

    def run(self, loader):
        for batch in loader:
            self.opt.zero_grad()
            self.train_step(batch)
            self.opt.step()

    def build(self, device):
        raise NotImplementedError

    def train_step(self, batch):
        raise NotImplementedError
# file: runners/dense.py
from meters import Sums
from runners.base import Runner
from torch import nn


class denseRunner(Runner):
    def build(self, device):
        self.net = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).to(device)
        self.criterion, self.losses = nn.CrossEntropyLoss(), Sums()

    def train_step(self, batch):
        loss = self.criterion(self.net(batch[0].cuda()), batch[1].cuda())
        loss.backward()
        self.losses.update(loss * 1000)  # expect: GPU104|GPU101


def loader():
    return []
# file: meters.py
class Sums:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total += value
        self.count += 1

    def mean(self):
        return self.total / self.count
