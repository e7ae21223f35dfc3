"""A record that returns early for what is a number; the training hands it numbers and a word."""

import torch
from torch import nn


class Record:
    def __init__(self):
        self.sums, self.last = {}, {}
        self.tensors = []

    def put(self, name, value):
        if isinstance(value, (int, float)):
            self.sums[name] = self.sums.get(name, 0.0) + value
            return
        if isinstance(value, str):
            self.last[name] = value
            return
        self.tensors.append((name, value))


def train(net: nn.Module, loader, opt, record: Record):
    net.cuda()
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        record.put("loss", loss.item())
        record.put("size", x.size(0))
        record.put("stage", "training")


def main(net, loader, rates):
    record = Record()
    for rate in rates:
        train(net, loader, torch.optim.SGD(net.parameters(), rate), record)
    print(record.sums, record.last, len(record.tensors))
