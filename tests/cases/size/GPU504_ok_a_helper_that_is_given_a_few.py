"""A function that reads one number of each that it is given, and all who call it give it a few: that is a few waits in each step."""

import torch
from torch import nn


def check(tensors, mask):
    for tensor in tensors:
        assert (tensor * (1 - mask)).abs().max().item() < 1e-4


def train(model: nn.Module, loader, optimizer):
    model.cuda()
    for inputs, labels, mask in loader:
        inputs, labels, mask = inputs.cuda(), labels.cuda(), mask.cuda()
        check([inputs, labels], mask)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
