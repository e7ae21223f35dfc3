"""The same with figures that the function has cut off, or made where grad is off."""

import torch
from torch import nn


class Flow:
    def __init__(self, net: nn.Module, balance):
        self.net, self.balance = net.cuda(), balance
        self.opt = torch.optim.Adam(net.parameters())

    def matching(self, batch):
        flows = self.net(batch)
        total = flows.pow(2).mean()
        with torch.no_grad():
            ends = flows[:, -1].pow(2).mean()
            inner = flows[:, :-1].pow(2).mean()
        return (total, ends, inner), flows.shape

    def balancing(self, batch):
        gap = self.net(batch).sum(1).pow(2).mean()
        return (gap, gap.detach(), gap.item()), batch.shape

    def train(self, loader, rate=0.1):
        smooth, flow = 0.0, 0.0
        for batch in loader:
            if self.balance:
                losses, _ = self.balancing(batch.cuda())
            else:
                losses, _ = self.matching(batch.cuda())
            self.opt.zero_grad()
            losses[0].backward()
            self.opt.step()
            smooth = rate * losses[1] + (1 - rate) * smooth
            flow = rate * losses[2] + (1 - rate) * flow
