"""Waits under a remainder that are asked for, as a clock is read next, or that come too seldom to cost anything."""

import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def step(model: nn.Module, x, y, optimizer):
    loss = cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def seldom(model, loader, optimizer):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % 100 == 0:
            torch.cuda.synchronize()


def timed(model, loader, optimizer):
    began = time.perf_counter()
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % 10 == 0:
            torch.cuda.synchronize()
            print(time.perf_counter() - began)
