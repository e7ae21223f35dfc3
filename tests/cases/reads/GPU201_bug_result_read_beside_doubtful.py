"""One function does both: of the two forwards the certain one is reported, without the doubtful one."""

from scoring import agreement
from torch import nn


def show(network: nn.Module, batch, other, wanted):
    network.eval()
    found = network(other.to("cuda"))
    best = network(batch.to("cuda")).argmax(1).tolist()  # expect: GPU201
    print(agreement(found, wanted), best)
