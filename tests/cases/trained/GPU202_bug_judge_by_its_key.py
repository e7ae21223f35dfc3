"""Networks and optimizers by key: the step of the maker makes gradients of the judge's weights, which are cleared before its own."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from munch import Munch


def convolutions(first, last):
    return nn.Sequential(
        nn.Conv2d(first, 512, 3, padding=1), nn.ReLU(), nn.Conv2d(512, 1024, 3, padding=1), nn.ReLU(),
        nn.Conv2d(1024, last, 3, padding=1),
    )


def built():
    return Munch(maker=convolutions(64, 3), judge=convolutions(3, 1))


class Several:
    """Optimizers under one name."""

    def __init__(self, by_name):
        self.by_name = by_name
        self.names = list(by_name)

    def step(self, name=None):
        for one in self.names if name is None else [name]:
            self.by_name[one].step()

    def zero_grad(self, name=None):
        if name is not None:
            self.by_name[name].zero_grad()
        else:
            _ = [self.by_name[one].zero_grad() for one in self.names]


def loss_of_maker(nets, noise):
    made = nets.maker(noise)
    return F.softplus(-nets.judge(made)).mean()  # expect: GPU202


class Solver:
    def __init__(self, rate):
        self.nets = built()
        self.optims = Munch()
        for name in self.nets.keys():
            self.nets[name].cuda()
            self.optims[name] = torch.optim.Adam(self.nets[name].parameters(), lr=rate)

    def clear(self):
        for one in self.optims.values():
            one.zero_grad()

    def train(self, loader):
        nets, optims = self.nets, self.optims
        for real in loader:
            noise = torch.randn(len(real), 64, 8, 8, device="cuda")
            with torch.no_grad():
                made = nets.maker(noise)
            loss = F.softplus(-nets.judge(real.cuda())).mean() + F.softplus(nets.judge(made)).mean()
            self.clear()
            loss.backward()
            optims.judge.step()
            loss = loss_of_maker(nets, noise)
            self.clear()
            loss.backward()
            optims.maker.step()


def in_one_wrapper(loader):
    nets = {"maker": convolutions(64, 3), "judge": convolutions(3, 1)}
    for net in nets.values():
        net.cuda()
    optimizer = Several({name: torch.optim.Adam(net.parameters()) for name, net in nets.items()})
    for real in loader:
        made = nets["maker"](torch.randn(len(real), 64, 8, 8, device="cuda"))
        optimizer.zero_grad()
        loss = F.softplus(-nets["judge"](real.cuda())).mean() + F.softplus(nets["judge"](made.detach())).mean()
        loss.backward()
        optimizer.step("judge")
        optimizer.zero_grad()
        loss = F.softplus(-nets["judge"](made)).mean()  # expect: GPU202
        loss.backward()
        optimizer.step("maker")
