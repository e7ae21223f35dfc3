"""The evaluation has no guard of its own; the one caller, in another file, enters it with grad off."""
# file: metrics.py
import torch
from torch import nn


def accuracy(model: nn.Module, loader):
    model.eval()
    hits = 0
    for inputs, targets in loader:
        logits = model(inputs.cuda())
        hits += (logits.argmax(-1) == targets.cuda()).sum().item()
    return hits
# file: train.py
import torch

from metrics import accuracy


def report(model, loader):
    with torch.no_grad():
        print(accuracy(model, loader))
