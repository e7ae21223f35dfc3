"""A function gives the loss, and figures beside it in the same tuple: one is the loss itself or a term of it, one is not."""

import torch
from torch import nn


class Flow:
    def __init__(self, net: nn.Module, balance):
        self.net, self.balance = net.cuda(), balance
        self.opt = torch.optim.Adam(net.parameters())

    def matching(self, batch):
        flows = self.net(batch)
        ends = flows[:, -1].pow(2).mean()
        inner = flows[:, :-1].pow(2).mean()
        total = ends + 0.5 * inner
        return (total, ends, inner), flows.shape

    def balancing(self, batch):
        gap = self.net(batch).sum(1).pow(2).mean()
        return (gap, gap, gap), batch.shape

    def train(self, loader, rate=0.1):
        smooth, flow = None, None
        for batch in loader:
            if self.balance:
                losses, _ = self.balancing(batch.cuda())
            else:
                losses, _ = self.matching(batch.cuda())
            self.opt.zero_grad()
            losses[0].backward()
            self.opt.step()
            if smooth is None:
                smooth = losses[1]
                flow = losses[2]
            else:
                smooth = rate * losses[1] + (1 - rate) * smooth  # expect: GPU107|GPU101
                flow = rate * losses[2] + (1 - rate) * flow  # expect: GPU107|GPU101
                if smooth < 1e-3 and flow < 1e-3:
                    break
