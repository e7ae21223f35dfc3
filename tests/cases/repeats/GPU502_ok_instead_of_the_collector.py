"""The collector runs every so many steps because it does not run by itself, or because a backward of a backward makes cycles."""

import gc

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def train(model: nn.Module, loader, optimizer):
    gc.disable()
    for index, (x, y) in enumerate(loader):
        loss = cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 50 == 0:
            gc.collect()


def seldom(model: nn.Module, loader, optimizer):
    for index, (x, y) in enumerate(loader):
        loss = cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 500 == 0:
            gc.collect()
