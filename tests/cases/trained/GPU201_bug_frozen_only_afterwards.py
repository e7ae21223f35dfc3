"""Weights are taken out of autograd after the evaluation, in another program, or of a part only; or before it, by the constructor."""
# file: networks.py
from torch import nn


class Reader(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        self.stem = nn.Conv2d(3, 256, 3)
        self.layers = nn.Sequential(nn.Conv2d(256, 256, 3), nn.ReLU(), nn.Conv2d(256, 1000, 3))
        self.settle(self.stem)

    @staticmethod
    def settle(part):
        part.requires_grad_(False)

    def forward(self, x):
        return self.layers(self.stem(x)).mean((2, 3))


class Settled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 1000, 3))
        self.requires_grad_(False)

    def forward(self, x):
        return self.layers(x).mean((2, 3))


# file: run.py
import torch
from networks import Reader, Settled


def accuracy(network, loader):
    network.eval()
    right = 0
    for x, y in loader:
        right += (network(x.cuda()).argmax(1) == y.cuda()).sum().item()  # expect: GPU201
    return right


def accuracy_ok(network, loader):
    network.eval()
    right = 0
    for x, y in loader:
        right += (network(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return right


def distil(teacher, student, loader, optimizer):
    for p in teacher.parameters():
        p.requires_grad = False
    for x, _ in loader:
        loss = (teacher(x.cuda()) - student(x.cuda())).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(loader):
    teacher, student = Reader(True).cuda(), Reader(False).cuda()
    print(accuracy(teacher, loader))
    distil(teacher, student, loader, torch.optim.Adam(student.parameters()))
    print(accuracy_ok(Settled().cuda(), loader))


if __name__ == "__main__":
    main(torch.load("batches.pt"))
