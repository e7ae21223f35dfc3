"""A method that only the forward of its own module calls: grad is the business of who runs the module."""

import torch
from torch import nn


class Completion(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net.cuda()

    def run_over(self, loader, model):
        model.eval()
        worst = 0.0
        for batch in loader:
            depth = model(batch.cuda())
            worst = max(worst, depth.max().item())
        return worst

    def forward(self, loader):
        return self.run_over(loader, self.net)
