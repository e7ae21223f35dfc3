"""Of several classes of one name, each with the methods of the others, a program takes those of the files that it imports them
from. One whose method nobody calls on an object of its own is not evaluated; nor is what only calls name that cannot be bound."""

# file: runs/__init__.py
# file: runs/wide.py
import torch
from torch import nn


class Trainer:
    def __init__(self, options):
        self.net = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3)).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=options.lr)

    def train(self, loader):
        self.net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.net(x.cuda()).mean((2, 3)), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def predict(self, loader):
        self.net.eval()
        found = []
        for x in loader:
            found += self.net(x.cuda()).mean((2, 3)).argmax(1).tolist()  # expect: GPU201
        return found


# file: runs/deep.py
import argparse

import torch
from torch import nn

from data import pictures


class Trainer:
    def __init__(self, options):
        self.net = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3)).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=options.lr)

    def train(self, loader):
        self.net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.net(x.cuda()).mean((2, 3)), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def predict(self, loader):
        self.net.eval()
        found = []
        for x in loader:
            found += self.net(x.cuda()).mean((2, 3)).argmax(1).tolist()  # note: GPU201
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    Trainer(parser.parse_args()).train(pictures("train"))


if __name__ == "__main__":
    main()
# file: data.py
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def pictures(split):
    return DataLoader(ImageFolder(split), batch_size=64)


# file: submit.py
import argparse

from data import pictures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--kind", default="wide")
    options = parser.parse_args()
    if options.kind == "wide":
        from runs.wide import Trainer
    else:
        raise ValueError(options.kind)
    trainer = Trainer(options)
    print(trainer.predict(pictures("test")))


if __name__ == "__main__":
    main()
# file: misused.py
import argparse

import torch
from torch import nn

from data import pictures


def train(net, opt, loader):
    net.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()).mean((2, 3)), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


def validate(net, loader, classes, names):
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x.cuda()).mean((2, 3)).argmax(1) == y.cuda()).sum().item()  # low: GPU201
    return right


def score(net, loader):
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x.cuda()).mean((2, 3)).argmax(1) == y.cuda()).sum().item()  # expect: GPU201
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    options = parser.parse_args()
    net = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3)).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=options.lr)
    for epoch in range(10):
        train(net, opt, pictures("train"))
        print(score(net, pictures("val")))
    print(validate(net, pictures("test")))


if __name__ == "__main__":
    main()
# file: unbound_method.py
import argparse

import torch
from torch import nn

from data import pictures


class Runner:
    def __init__(self, options):
        self.net = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3)).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=options.lr)

    def train(self, loader):
        self.net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.net(x.cuda()).mean((2, 3)), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def check(self, loader):
        self.net.eval()
        right = 0
        for x, y in loader:
            right += (self.net(x.cuda()).mean((2, 3)).argmax(1) == y.cuda()).sum().item()  # expect: GPU201
        return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    runner = Runner(parser.parse_args())
    runner.train(pictures("train"))
    print(Runner.check(runner, pictures("val")))


if __name__ == "__main__":
    main()
