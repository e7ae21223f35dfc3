"""A backward goes through each loss of the list; the weights of the layers then take them in with their graphs."""

import torch
import torch.nn.functional as F
from torch import nn


class Hedged(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 10) for _ in range(layers)).cuda()
        self.share = torch.ones(layers, device="cuda")

    def forward(self, x):
        return [layer(x) for layer in self.layers]

    def update(self, x, y):
        losses = []
        for scores in self.forward(x.cuda()):
            losses.append(F.cross_entropy(scores, y.cuda()))
        for i in range(len(losses)):
            losses[i].backward(retain_graph=True)
        for i in range(len(losses)):
            self.share[i] *= torch.pow(torch.tensor(0.99, device="cuda"), losses[i])  # expect: GPU107
