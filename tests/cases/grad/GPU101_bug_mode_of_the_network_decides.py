"""The same helper; this evaluation leaves the network in training mode, for samples by dropout."""

import torch
from torch import nn


class Forecasting:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(net.parameters())

    def error(self, past, future):
        with torch.set_grad_enabled(self.net.training):
            return nn.functional.l1_loss(self.net(past.cuda()), future.cuda())  # maybe: GPU201

    def fit(self, loader):
        self.net.train()
        for past, future in loader:
            self.opt.zero_grad()
            self.error(past, future).backward()
            self.opt.step()

    def evaluate_by_samples(self, loader, samples=20):
        self.net.train()
        total = 0.0
        for past, future in loader:
            for _ in range(samples):
                total += self.error(past, future)  # expect: GPU101  # maybe: GPU201
        return (total / len(loader) / samples).item()
