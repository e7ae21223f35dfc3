"""In eval mode, but what becomes of the result is decided elsewhere: the gradient may be wanted there. The twin reads it."""

import torch
from scoring import agreement
from torch import nn


def show(network: nn.Module, batch, wanted):
    network.eval()
    found = network(batch.to("cuda"))  # low: GPU201
    print(agreement(found, wanted))
