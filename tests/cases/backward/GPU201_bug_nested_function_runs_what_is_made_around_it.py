"""A network of the project takes gradients in its forward; the one that the nested function runs is another."""

# file: networks.py
import torch
from torch import nn


class Equilibrium(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.potential = nn.Linear(width, 1)

    def forward(self, x):
        x = x.requires_grad_(True)
        return torch.autograd.grad(self.potential(x).sum(), x, create_graph=True)[0]


class Plain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Conv2d(width, width, 3), nn.ReLU()) for _ in range(8)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))
# file: train.py
import torch
import torch.nn.functional as F
from networks import Plain


def main(loader, held_out, device="cuda"):
    model = Plain(64).to(device)
    opt = torch.optim.Adam(model.parameters())

    def accuracy():
        model.eval()
        right = 0
        for x, y in held_out:
            out = model(x.to(device))  # expect: GPU201
            right += int((out.argmax(1) == y.to(device)).sum())
        return right

    for epoch in range(10):
        model.train()
        for x, y in loader:
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, accuracy())
