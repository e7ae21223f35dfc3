"""Grad is on already where a dropped `enable_grad()` stands: nothing is saved or lost by it."""

import torch
from torch import nn


def fit(model: nn.Module, optimizer, loader):
    for x, y in loader:
        with torch.no_grad():
            before = nn.functional.mse_loss(model(x.cuda()), y.cuda()).item()
        torch.enable_grad()
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(before)
