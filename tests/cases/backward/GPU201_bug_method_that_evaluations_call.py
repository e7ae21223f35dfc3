"""A network whose own method reads its scores as numbers, batch by batch: no other part of it goes on with what that runs."""

import torch
from torch import nn


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3), nn.AdaptiveAvgPool2d(1)
        )
        self.out = nn.Linear(512, 40)

    def forward(self, pictures):
        return self.out(self.trunk(pictures).flatten(1))

    def right(self, pictures, kinds):
        scores = self.forward(pictures)  # expect: GPU201
        return (scores.data.argmax(1) == kinds).sum().item()

    def measure(self, loader):
        return sum(self.right(pictures.cuda(), kinds.cuda()) for pictures, kinds in loader)

    def learn(self, loader, optimizer):
        for pictures, kinds in loader:
            loss = nn.functional.cross_entropy(self.forward(pictures.cuda()), kinds.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main(train, held_out):
    sorter = Sorter().cuda()
    optimizer = torch.optim.Adam(sorter.parameters())
    for _ in range(90):
        sorter.learn(train, optimizer)
        print(sorter.measure(held_out))


main(load("train"), load("held out"))
