"""The first goes as another comes, by another name of the list."""

import torch
from torch import nn


class Window:
    def __init__(self, network: nn.Module):
        self.network = network.cuda().eval()
        self.kept = []

    @torch.no_grad()
    def fill(self, loader):
        for images, _ in loader:
            kept = self.kept
            kept.append(self.network(images.cuda()))
            if len(self.kept) > 8:
                oldest = self.kept
                oldest.pop(0)
        return torch.cat(self.kept).cpu()
