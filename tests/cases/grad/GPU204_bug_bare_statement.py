import torch
from torch import nn


def evaluate(model: nn.Module, loader):
    model.eval()
    torch.no_grad()  # expect: GPU204
    hits = 0
    for x, y in loader:
        out = model(x.cuda())  # expect: GPU201
        hits += (out.argmax(1).cpu() == y).sum().item()
    return hits
