"""Who calls an evaluation: a guarded caller in another file, a subclass, a table of commands, a console script, nobody."""
# file: lib/__init__.py
from .evaluation import Evaluator, evaluate, run_all
from .tools import *

__all__ = ["Evaluator", "evaluate", "run_all"]


# file: lib/evaluation.py
import torch
from torch import nn

from . import tools


def evaluate(model, loader, device="cuda"):
    model.eval()
    total = 0
    for x, y in loader:
        total += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    return total


def predict(model, loader):
    model.cuda().eval()
    return [model(x.cuda()).argmax(1).cpu() for x in loader]  # expect: GPU201


def _inner(model, x):
    return model(x).softmax(-1).cpu()


def outer(model, x):
    return _inner(model, x)


def run_all(model, loaders, **options):
    found = {}
    for name, loader in loaders.items():
        found[name] = evaluate(model, loader, **options)
    return found


def never_called_here(model, loader):
    for x in loader:
        print(model(x.cuda()).mean().item())  # maybe: GPU201


class Evaluator:
    def __init__(self, model, loader):
        self.model, self.loader = model.cuda(), loader

    def evaluate(self):
        self.model.eval()
        scores = []
        for x, y in self.loader:
            scores.append(self.score(x, y))  # low: GPU201
        return sum(scores)

    def score(self, x, y):
        return nn.functional.cross_entropy(self.model(x.cuda()), y.cuda()).item()

    def __call__(self, *args):
        return self.evaluate()

    @classmethod
    def of(cls, model, loader):
        return cls(model, loader)

    @staticmethod
    def only(model, x, scale=1.0):
        return (model(x.cuda()) * scale).argmax().item()  # note: GPU201


class Scorer(Evaluator):
    def score(self, x, y):
        return self.model(x.cuda()).max().item()

    def evaluate(self):
        with torch.no_grad():
            return super().evaluate()


# file: lib/tools.py
import torch

COMMANDS = {}


def command(name):
    def register(function):
        COMMANDS[name] = function
        return function

    return register


def measure(function, *args, **kwargs):
    return function(*args, **kwargs)


def quietly(function, *args):
    with torch.no_grad():
        return function(*args)


@command("predict")
def predict_command(model, loader):
    model.cuda().eval()
    for x in loader:
        print(model(x.cuda()).argmax(1).tolist())  # maybe: GPU201


# file: train.py
import sys

import torch
from torch import nn
from torchvision import models

import lib
from lib import Evaluator, evaluate, run_all
from lib.evaluation import Scorer, outer, predict
from lib.tools import COMMANDS, measure, quietly


class Trainer:
    evaluator = None

    def __init__(self, model, loader):
        self.model, self.loader = model.cuda(), loader
        self.scorer = Scorer(model, loader)
        self.plain = Evaluator.of(model, loader)

    def fit(self, epochs):
        optimizer = torch.optim.Adam(self.model.parameters())
        for epoch in range(epochs):
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            with torch.no_grad():
                print(evaluate(self.model, self.loader), run_all(self.model, {"val": self.loader}, device="cuda"))
                print(self.plain.evaluate(), lib.evaluation.outer(self.model, x.cuda()))
            print(self.scorer.evaluate(), self.plain())
            self.after_epoch(epoch)

    def after_epoch(self, epoch):
        for x in self.loader:
            out = self.model(x.cuda())
            print(out.sum().item())

    def forward_only(self, x):
        return self.model(x.cuda())


class QuietTrainer(Trainer):
    @torch.no_grad()
    def after_epoch(self, epoch):
        super().after_epoch(epoch)

    def forward_only(self, *args):
        with torch.inference_mode():
            return super().forward_only(*args)


def main():
    loader = torch.utils.data.DataLoader([0] * 1000, batch_size=10)
    model = models.resnet50()
    trainer = QuietTrainer(model, loader)
    trainer.fit(3)
    quietly(predict, model, loader)
    measure(evaluate, model, loader)
    print(COMMANDS[sys.argv[1]](model, loader), outer(model, torch.zeros(1)), Evaluator.only(model, next(iter(loader))))  # maybe: GPU201


main()


# file: tests/test_evaluation.py
import unittest

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lib import evaluate


@pytest.fixture
def model():
    return nn.Linear(2, 2)


def test_evaluate(model):
    outputs = []
    for _ in range(3):
        outputs.append(model(torch.zeros(1, 2)))
    assert_close(outputs[0], outputs[1])
    assert evaluate(model, [], "cpu") == 0


class TestIt(unittest.TestCase):
    def test_parts(self):
        losses = []
        net = nn.Linear(2, 2).cuda()
        for _ in range(10):
            losses.append(net(torch.zeros(1, 2).cuda()).sum())
        self.assertTrue(torch.allclose(losses[0], losses[1]))


if __name__ == "__main__":
    unittest.main()
