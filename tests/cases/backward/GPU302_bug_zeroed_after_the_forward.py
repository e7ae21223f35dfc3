"""Zeroed just before the backward: the graph of the step before lives through this one's forward."""
import torch


def train(model, criterion, optimizer, loader):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(create_graph=True)  # expect: GPU302
        optimizer.step()
