"""`test_model` is called by its own script, batch by batch: an evaluation, no test."""
import torch
from torch import nn

model = nn.Linear(8, 1).cuda()
criterion = nn.MSELoss()


def test_model(loader):
    model.eval()
    losses = []
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)  # maybe: GPU201
        losses.append(loss)  # expect: GPU101
    print(torch.stack(losses).mean())


def main(loader):
    for _ in range(10):
        test_model(loader)
