"""Waits under a remainder that are asked for: a value is read next, a clock is, or they come too seldom to cost anything."""

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


def before_it_is_read(model, loader, optimizer):
    for index, (x, y) in enumerate(loader):
        loss = step(model, x, y, optimizer)
        if index % 10 == 0:
            torch.cuda.synchronize()
            print(loss.item())


def timed(model, loader, optimizer):
    began = time.perf_counter()
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % 10 == 0:
            torch.cuda.synchronize()
            print(time.perf_counter() - began)
