"""What goes as another comes is of another list."""

import torch
from torch import nn


class Window:
    def __init__(self, network: nn.Module):
        self.network = network.cuda().eval()
        self.kept, self.names = [], []

    @torch.no_grad()
    def fill(self, loader):
        for images, names in loader:
            kept = self.kept
            kept.append(self.network(images.cuda()))  # low: GPU102
            seen = self.names
            seen.append(names)
            if len(seen) > 8:
                seen.pop(0)
        return torch.cat(self.kept).cpu()
