import torch
from torch import nn


def train(net: nn.Module, loader, optimizer, criterion, chunk=8):
    """Truncated backpropagation: the sum is backwarded and emptied in the block that adds to it."""
    window = 0
    for data, targets in loader:
        kept, steps = [], 0
        for step in range(len(data)):
            kept.append(net(data[step].cuda()))
            steps += 1
            if steps == chunk:
                loss = criterion(torch.stack(kept), targets[:chunk].cuda())
                window += loss
                optimizer.zero_grad()
                window.backward()
                optimizer.step()
                window, kept, steps = 0, [], 0
        if len(data) % chunk:
            loss = criterion(torch.stack(kept), targets[-steps:].cuda())
            window += loss
            optimizer.zero_grad()
            window.backward()
            optimizer.step()
            window = 0
