"""A switch that another file defines turns grad off for the whole evaluation."""
# file: evaluate.py
import torch

from modes import inference


def accuracy(model: torch.nn.Module, loader):
    model.eval()
    hits = 0
    with inference(model):
        for inputs, targets in loader:
            hits += (model(inputs.cuda()).argmax(-1) == targets.cuda()).sum().item()
    return hits
# file: modes.py
import contextlib

import torch


@contextlib.contextmanager
def inference(model):
    model.eval()
    with torch.no_grad():
        yield
