"""Recovery behind the handler, where the traceback holds nothing any more."""

import gc

import torch
from torch import nn


def step(network: nn.Module, batch, optimizer):
    optimizer.zero_grad()
    loss = network(batch.cuda()).mean()
    loss.backward()
    optimizer.step()


def train(network: nn.Module, loader, optimizer):
    network.cuda()
    for batch in loader:
        failed = False
        try:
            step(network, batch, optimizer)
        except torch.cuda.OutOfMemoryError:
            failed = True
        if failed:
            gc.collect()
            torch.cuda.empty_cache()
            step(network, batch[: len(batch) // 2], optimizer)
