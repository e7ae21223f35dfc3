"""The batches come from a loader over what an object has that the function is given: each has no graph but its own."""

import torch
from torch.utils.data import DataLoader


def fit(network, data, criterion, optimizer):
    loader = DataLoader(data.samples, batch_size=8)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(network(inputs), targets)
        loss.backward(retain_graph=True)  # expect: GPU301
        optimizer.step()
