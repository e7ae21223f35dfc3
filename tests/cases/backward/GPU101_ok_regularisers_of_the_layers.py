"""Each layer's regulariser is summed over the layers; the trainer of another file adds the sum to its loss."""
# file: sparse.py
import torch
from torch import nn


class SparseNet(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.gates = nn.ParameterList(nn.Parameter(torch.zeros(b)) for b in widths[1:])

    def forward(self, x):
        for layer, gate in zip(self.layers, self.gates):
            x = layer(x).relu() * gate.sigmoid()
        return x

    def expected_size(self):
        size = 0
        for layer, gate in zip(self.layers, self.gates):
            size = size + gate.sigmoid().sum() * layer.in_features
        return size
# file: train.py
import torch
import torch.nn.functional as F

from sparse import SparseNet


def main(loader):
    net = SparseNet([784, 512, 10]).cuda()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = F.cross_entropy(net(x.flatten(1).cuda()), y.cuda())
        loss += 1e-6 * net.expected_size()
        opt.zero_grad()
        loss.backward()
        opt.step()
