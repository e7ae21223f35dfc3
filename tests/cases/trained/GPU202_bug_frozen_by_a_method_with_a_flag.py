"""A method with a flag freezes the judge for the step of the actor, itself or a part of the network that runs there; a wrapper of it has its optimizer."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def convolutions(first, last):
    return nn.Sequential(
        nn.Conv2d(first, 512, 3, padding=1), nn.ReLU(), nn.Conv2d(512, 1024, 3, padding=1), nn.ReLU(),
        nn.Conv2d(1024, last, 3, padding=1),
    )


def switch(net, on):
    for p in net.parameters():
        p.requires_grad_(on)


class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = convolutions(64, 3)
        self.first, self.second = convolutions(3, 1), convolutions(3, 1)
        self.policy = convolutions(64, 3)

    def track(self, on=True):
        for one in [self.first, self.second]:
            switch(one, on)

    def value(self, x):
        return torch.min(self.first(x), self.second(x))


class Flipped(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x.flip(-1))


class Agent:
    def __init__(self):
        self.world = World().cuda()
        self.all = torch.optim.Adam(self.world.parameters())
        self.own = torch.optim.Adam(self.world.policy.parameters())

    def act(self, z):
        self.own.zero_grad()
        self.world.track(False)
        loss = -self.world.value(self.world.policy(z)).mean()
        loss.backward()
        self.own.step()
        self.world.track(True)

    def act_unfrozen(self, z):
        self.own.zero_grad()
        loss = -self.world.value(self.world.policy(z)).mean()  # expect: GPU202
        loss.backward()
        self.own.step()

    def update(self, loader):
        for z, x, y in loader:
            self.all.zero_grad()
            loss = F.mse_loss(self.world.value(x.cuda()), y.cuda()) + self.world.encoder(z.cuda()).mean()
            loss.backward()
            self.all.step()
            self.act(z.cuda())
            self.act_unfrozen(z.cuda())


class Game:
    def __init__(self):
        self.maker, self.judge = convolutions(64, 3).cuda(), convolutions(3, 1).cuda()
        self.first = torch.optim.Adam(self.maker.parameters())
        self.second = torch.optim.Adam(self.judge.parameters())
        self.flipped = Flipped(self.judge)

    def freeze(self, off=True):
        for p in self.judge.parameters():
            p.requires_grad = not off

    def play(self, loader):
        for real in loader:
            self.second.zero_grad()
            made = self.maker(torch.randn(len(real), 64, 8, 8, device="cuda"))
            loss = F.softplus(-self.judge(real.cuda())).mean() + F.softplus(self.judge(made.detach())).mean()
            loss.backward()
            self.second.step()
            self.first.zero_grad()
            loss = F.softplus(-self.flipped(made)).mean()  # expect: GPU202
            loss.backward()
            self.first.step()
