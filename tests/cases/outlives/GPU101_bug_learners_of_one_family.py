"""The learner is found by its name in the settings: whichever it is, `train` gives three values, and one of them returns its loss
as it is. The script adds it up for a hundred rounds."""
# file: main.py
import argparse

import learners
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--learner", default="pairwise")
parser.add_argument("--print-every", type=int, default=100)
args = parser.parse_args()


def run(feed):
    torch.manual_seed(0)
    learner = learners.find(args.learner)(feed.width)
    total, step = 0.0, 0
    while step < 100_000:
        loss, _, summary = learner.train(feed.batch())
        total += loss / args.print_every  # expect: GPU101
        step += 1
        if step % args.print_every == 0:
            print(step, total, summary)
            total = 0.0
# file: learners/__init__.py
from learners.base import Learner


def find(name):
    return {cls.__name__.lower(): cls for cls in Learner.__subclasses__()}[name]
# file: learners/base.py
import torch
from torch import nn


class Learner:
    def __init__(self, width):
        self.net = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, 1)).cuda()
        self.opt = torch.optim.Adagrad(self.net.parameters())
        self.summary = {}

    def train(self, batch):
        raise NotImplementedError

    def step(self):
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()
# file: learners/pointwise.py
from learners.base import Learner


class Pointwise(Learner):
    def train(self, batch):
        self.loss = (self.net(batch[0].cuda()).squeeze(-1) - batch[1].cuda()).pow(2).mean()
        self.step()
        return self.loss.item(), None, self.summary
# file: learners/pairwise.py
from torch.nn import functional as F

from learners.base import Learner


class Pairwise(Learner):
    def train(self, batch):
        better, worse = self.net(batch[0].cuda()), self.net(batch[1].cuda())
        self.loss = F.softplus(worse - better).mean()
        self.step()
        return self.loss, None, self.summary  # expect: GPU101
