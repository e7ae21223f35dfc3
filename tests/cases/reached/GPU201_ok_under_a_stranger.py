"""A context manager of a library that nobody can see: most leave grad alone, some switch it off. After
training, the weights are there and the result goes to somebody else."""

import torch
from arena import Stage
from torch import nn


def play(network: nn.Module, loader):
    network.eval()
    with Stage("first") as stage:
        for batch in loader:
            stage.show(network(batch.to("cuda")).argmax(1).tolist())  # low: GPU201
