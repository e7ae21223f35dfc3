"""Training and validation share a helper that runs the network; grad is on for both."""

import torch
import torch.nn.functional as F
from torch import nn


class Trainer:
    def __init__(self, net: nn.Module, device="cuda"):
        self.net = net.to(device)
        self.device = device
        self.optimizer = torch.optim.Adam(net.parameters())

    def _scores(self, batch):
        return self.net(batch["x"].to(self.device))

    def train(self, loader):
        self.net.train()
        for batch in loader:
            loss = F.cross_entropy(self._scores(batch), batch["y"].to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def validate(self, loader):
        self.net.eval()
        hits = 0
        for batch in loader:
            hits += (self._scores(batch).argmax(1).cpu() == batch["y"]).sum().item()  # expect: GPU201
        return hits
