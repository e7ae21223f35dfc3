"""The same program with learners that all return numbers. A method of the same name elsewhere gives another number of values."""
# file: main.py
import learners


def run(feed, name):
    learner = learners.find(name)(feed.width)
    total = 0.0
    for batch in feed:
        loss, _, summary = learner.train(batch)
        total += loss
    return total, summary
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

    def step(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
# file: learners/pointwise.py
from learners.base import Learner


class Pointwise(Learner):
    def train(self, batch):
        loss = (self.net(batch[0].cuda()).squeeze(-1) - batch[1].cuda()).pow(2).mean()
        self.step(loss)
        return loss.item(), None, self.summary


class Listwise(Learner):
    def train(self, batch):
        loss = -self.net(batch[0].cuda()).log_softmax(0).mean()
        self.step(loss)
        return float(loss), None, self.summary
