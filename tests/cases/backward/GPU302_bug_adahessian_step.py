import torch
from torch import nn


def train(model, loader, optimizer):
    """A second-order optimizer that reads the graph of the gradients in `step`."""
    crit = nn.CrossEntropyLoss()
    for x, y in loader:
        loss = crit(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward(retain_graph=True, create_graph=True)  # expect: GPU302
        optimizer.step()
        print(loss.item())
