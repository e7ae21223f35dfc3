"""The name of what backward is called on has two values, or the entry that is kept is another one."""

import torch


class Solver:
    def __init__(self, model, criterion, plain):
        self.model = model
        self.criterion = criterion
        self.plain = plain
        self.optimizer = torch.optim.Adam(model.parameters())
        self.history, self.seen, self.steps = [], [], []

    def fit(self, loader, warm):
        for batch in loader:
            self.optimizer.zero_grad()
            stats = self.criterion(self.model(batch), batch)
            loss = stats["total"]
            if warm:
                loss = self.plain(self.model(batch), batch)
            loss.backward()
            self.optimizer.step()
            self.seen.append(stats["total"])  # maybe: GPU101

    def step(self, loader):
        for batch in loader:
            self.optimizer.zero_grad()
            stats = self.criterion(self.model(batch), batch)
            loss = stats["total"]
            loss.backward()
            self.optimizer.step()
            self.steps.append(stats["count"])
            self.history.append(loss.item())
