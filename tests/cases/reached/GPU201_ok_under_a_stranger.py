"""A context manager of a library that nobody can see: most leave grad alone, some switch it off. After
training, the weights are there and the result goes to somebody else."""

import torch
from arena import Stage
from scoring import agreement
from torch import nn


def play(network: nn.Module, loader):
    network.eval()
    with Stage("first") as stage:
        for batch in loader:
            stage.show(network(batch.to("cuda")).argmax(1).tolist())  # low: GPU201


def play_carefully(network: nn.Module, loader, watch):
    network.eval()
    with Stage("second") as stage, torch.no_grad() if watch else Stage("third"):
        for batch in loader:
            stage.show(network(batch.to("cuda")).argmax(1).tolist())


def fit(network: nn.Module, loader, optimizer, criterion, everything):
    for batch, wanted in loader:
        optimizer.zero_grad()
        criterion(network(batch.to("cuda")), wanted).backward()
        optimizer.step()
    network.eval()
    found = network(everything.to("cuda"))  # low: GPU201
    return agreement(found)
