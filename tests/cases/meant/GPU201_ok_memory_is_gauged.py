import torch
from torch import nn


class Gauge:
    """How much each layer takes in a training step, with what it saves."""

    def __init__(self, net: nn.Module, device="cuda"):
        self.net, self.device = net, device

    def sizes(self, x):
        found = []
        out = x.to(self.device)
        for layer in self.net.children():
            layer.to(self.device)
            layer.train()
            before = torch.cuda.memory_allocated(self.device)
            out = layer(out)
            after = torch.cuda.memory_allocated(self.device)
            found.append(after - before)
        return found
