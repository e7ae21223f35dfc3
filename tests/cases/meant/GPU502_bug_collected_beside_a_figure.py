"""A figure of memory is put by in each step beside the collector's call: each may have to begin from the same state."""
import gc

import torch


def measured(model, optimizer, loader):
    used = []
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        used.append(torch.cuda.memory_allocated())
        gc.collect()  # low: GPU502
    return used


def printed(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        print(torch.cuda.memory_allocated())
        gc.collect()  # expect: GPU502
