"""What backward is called on is an entry of a dict by another name."""

import torch


class Solver:
    def __init__(self, model, criterion):
        self.model = model
        self.criterion = criterion
        self.optimizer = torch.optim.Adam(model.parameters())
        self.history = []

    def fit(self, loader):
        for batch in loader:
            self.optimizer.zero_grad()
            stats = self.criterion(self.model(batch), batch)
            loss = stats["total"]
            loss.backward()
            self.optimizer.step()
            self.history.append(stats["total"])  # expect: GPU101
