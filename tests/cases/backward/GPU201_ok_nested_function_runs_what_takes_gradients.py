"""The network that the nested function runs takes gradients in its forward: without grad around it, it raises."""

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
# file: train.py
import torch
import torch.nn.functional as F
from networks import Equilibrium


def main(loader, held_out, device="cuda"):
    model = Equilibrium(64).to(device)
    opt = torch.optim.Adam(model.parameters())

    def accuracy():
        model.eval()
        right = 0
        for x, y in held_out:
            out = model(x.to(device))  # maybe: GPU201
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
