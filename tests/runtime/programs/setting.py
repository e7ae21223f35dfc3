"""What the programs train, and on what."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model(width=64):
    return nn.Sequential(
        nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
    ).to(device)


def batch():
    return torch.randn(16, 32).to(device), torch.randint(0, 4, (16,)).to(device)


def training():
    model = make_model()
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def learn(model, optimizer):
    """One step; its loss, of which the graph has been freed."""
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def train_some(model, optimizer, steps=3):
    model.train()
    for _ in range(steps):
        learn(model, optimizer)
