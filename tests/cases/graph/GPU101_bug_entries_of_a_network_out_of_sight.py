"""What a network out of sight gives besides what is trained may have been cut off inside it; the trained entry has a graph."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.criterion = nn.CrossEntropyLoss()
        self.gates = 0
        self.seen = []

    def entry_summed_and_scaled(self):
        self.model.train()
        for x, y in self.loader:
            out = self.model.forward(x)
            gate = out["gate"]
            loss = self.criterion(out["scores"], y)
            self.gates += torch.abs(gate.sum(0))  # low: GPU101
            self.gates = (self.gates - torch.min(self.gates)) / torch.max(self.gates)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def field_listed(self):
        self.model.train()
        for x, y in self.loader:
            out = self.model(x)
            loss = self.criterion(out.scores, y)
            self.seen.append(out.gate)  # low: GPU101
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def entry_listed(self):
        self.model.train()
        for x, y in self.loader:
            out = self.model(x)
            loss = self.criterion(out["scores"], y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.seen.append(out["gate"])  # low: GPU101

    def trained_field_listed(self):
        self.model.train()
        for x, y in self.loader:
            out = self.model(x)
            loss = self.criterion(out.scores, y)
            self.seen.append(out.scores)  # note: GPU101
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def trained_entry_listed(self):
        self.model.train()
        for x, y in self.loader:
            out = self.model(x)
            scores = out["scores"]
            penalty = scores.pow(2).mean()
            loss = self.criterion(scores, y) + 0.1 * penalty
            self.seen.append(out["scores"])  # note: GPU101
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def field_that_is_cut_for_the_log(self, writer):
        self.model.train()
        for x, y in self.loader:
            out = self.model(x)
            loss = self.criterion(out.scores, y)
            self.seen.append(out.gate)  # note: GPU101
            writer.add_histogram("gate", out.gate.detach())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
