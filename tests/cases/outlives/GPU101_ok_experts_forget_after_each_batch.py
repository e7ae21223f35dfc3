"""Balance terms gather in the network during its forward; the trainer of another file uses them and has them forgotten."""
# file: experts.py
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.balance = []

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        self.balance.append(share.mean(0).pow(2).sum())
        return sum(share[..., k : k + 1] * expert(x) for k, expert in enumerate(self.experts))

    def forget(self):
        self.balance = []
# file: train.py
import torch
from torch import nn

from experts import Experts


def train(loader, depth=4):
    layers = [Experts(1024, 8) for _ in range(depth)]
    net = nn.Sequential(*layers).cuda()
    opt = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        loss = loss + 0.01 * sum(term for layer in layers for term in layer.balance)
        opt.zero_grad()
        loss.backward()
        opt.step()
        for layer in layers:
            layer.forget()
