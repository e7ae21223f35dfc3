"""Two files call the evaluation. One switches grad off, the other one does not."""
# file: metrics.py
import torch
from torch import nn


def accuracy(model: nn.Module, loader):
    model.eval()
    hits = 0
    for inputs, targets in loader:
        logits = model(inputs.cuda())  # expect: GPU201
        hits += (logits.argmax(-1) == targets.cuda()).sum().item()
    return hits
# file: train.py
import torch

from metrics import accuracy


def report(model, loader):
    with torch.no_grad():
        print(accuracy(model, loader))
# file: predict.py
import torch

from metrics import accuracy

print(accuracy(torch.load("model.pt").cuda(), torch.load("data.pt")))
