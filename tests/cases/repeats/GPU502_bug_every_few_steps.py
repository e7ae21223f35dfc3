"""All objects of the process are walked in every so many steps, which takes longer than a step of most networks."""

import gc

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def train(model: nn.Module, loader, optimizer, clean_every=50):
    for index, (x, y) in enumerate(loader):
        loss = cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % clean_every == 0:
            gc.collect()  # note: GPU502
            torch.cuda.empty_cache()
        if index % 4 == 3:
            gc.collect()  # note: GPU502


def evaluate(model: nn.Module, loader):
    right = 0
    with torch.no_grad():
        for index, (x, y) in enumerate(loader):
            right += model(x.cuda()).argmax(1).eq(y.cuda()).sum().item()
            if (index + 1) % 20 == 0:
                gc.collect()  # note: GPU502
    return right
