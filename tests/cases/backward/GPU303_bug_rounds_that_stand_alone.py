"""Rounds that each stand alone: what goes into the next one is detached, a number, or nothing. A bank out of sight may carry it."""

import torch
from torch import nn


class Tracker:
    def __init__(self, loader, bank):
        self.net = nn.GRUCell(8, 8)
        self.head = nn.Linear(8, 8)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loader = loader
        self.bank = bank

    def cut_before_the_next(self):
        total, last = 0.0, None
        for frames, masks in self.loader:
            out = self.head(frames)
            loss = self.criterion(out, masks)
            if last is not None:
                loss = loss + (out - last).pow(2).mean()
            last = out.detach()
            total += loss  # low: GPU303
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()

    def two_networks_in_a_round(self):
        total, hits = 0.0, 0
        for frames, masks in self.loader:
            hidden = self.head(frames)
            out = self.head(hidden)
            loss = self.criterion(out, masks)
            hits += (out.argmax(1) == masks).sum().item()
            total += loss  # low: GPU303
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        return hits

    def bank_out_of_sight(self):
        total = 0.0
        for frames, masks in self.loader:
            out = self.net(frames, self.bank.read())
            self.bank.write(out)
            total += self.criterion(out, masks)  # low: GPU303
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
