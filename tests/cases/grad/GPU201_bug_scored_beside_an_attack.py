"""The attack needs the gradient of the pictures, the forward that scores them needs none; and one whose result nobody reads."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attack:
    def __init__(self, net, rounds=10):
        self.net, self.rounds = net, rounds

    def __call__(self, x, y):
        moved = x.clone().detach()
        for _ in range(self.rounds):
            moved.requires_grad_(True)
            F.cross_entropy(self.net(moved), y).backward()  # maybe: GPU202
            moved = (moved + 0.01 * moved.grad.sign()).detach()
        return moved


def made():
    return nn.Sequential(
        nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 1024, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 10)
    ).cuda()


def robust(loader):
    net = made()
    net.eval()
    attack, right = Attack(net), 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        answers = net(attack(x, y))  # expect: GPU201
        right += (answers.argmax(1) == y).sum().item()
    return right


def robust_without_grad(loader):
    net = made()
    net.eval()
    attack, right = Attack(net), 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        moved = attack(x, y)
        with torch.no_grad():
            answers = net(moved)
        right += (answers.argmax(1) == y).sum().item()
    return right


def trained(loader):
    net = made()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    attack = Attack(net)
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        net.eval()
        moved = attack(x, y)
        net.train()
        loss = F.cross_entropy(net(moved), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def values(loader):
    critic = made()
    for x, _ in loader:
        seen = critic(x.cuda())  # low: GPU201


def values_for_what_they_run(loader):
    critic = made()
    for x, _ in loader:
        critic(x.cuda()).mean().backward()
