"""The pile is returned joined; whoever calls takes it to the host at once."""

import torch
from torch import nn


@torch.no_grad()
def run(net: nn.Module, loader):
    net.cuda().eval()
    parts = []
    for x, _ in loader:
        parts.append(net(x.cuda()))  # low: GPU102
    joined = torch.cat(parts, dim=0)
    return joined


class Index:
    def __init__(self, net):
        self.net = net

    def embed(self, loader):
        return run(self.net, loader)

    def save(self, loader, path):
        rows = self.embed(loader).detach().cpu().numpy()
        rows.tofile(path)
