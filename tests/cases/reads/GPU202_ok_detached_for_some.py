"""The same where the name keeps its graph on some way, or where the values are used as well as the indices."""

import torch
from torch import nn


class Learner:
    def __init__(self, network, head, device):
        self.trunk = network.to(device)
        self.head = head.to(device)
        self.optimizer = torch.optim.Adam([*self.trunk.parameters(), *self.head.parameters()])

    def by_choice(self, states, rewards, warm):
        features = self.trunk(states)
        if warm:
            features = features.detach()
        self.step(nn.functional.mse_loss(self.head(features), rewards))

    def before(self, states, rewards):
        features = self.trunk(states)
        guess = self.head(features)
        features = features.detach()
        self.step(nn.functional.mse_loss(guess, rewards) + features.norm())

    def by_values(self, states, labels):
        best, label = self.trunk(states).max(1)
        self.step((best * (label == labels)).mean())

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
