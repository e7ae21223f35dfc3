"""What the step of another file returns follows a flag: this caller asks for a number."""
# file: train.py
import torch
from torch import nn

from steps import train_step


def main(network: nn.Module, loader):
    optimizer = torch.optim.SGD(network.cuda().parameters(), lr=0.1)
    total = 0.0
    for batch in loader:
        total += train_step(network, batch.cuda(), as_number=True)
        optimizer.step()
        network.zero_grad()
    return total / len(loader)
# file: steps.py
import torch.nn.functional as F


def train_step(network, batch, as_number=False):
    loss = F.mse_loss(network(batch), batch)
    loss.backward()
    if as_number:
        return loss.item()
    return loss
