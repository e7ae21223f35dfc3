"""Results of a target network that are compared, detached under their own name, or of which only the indices are used."""

import copy

import torch
from torch import nn


class Learner:
    def __init__(self, network, device):
        self.online = network.to(device)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters())

    def by_comparison(self, states, returns):
        values = self.online(states)
        bound = self.target(states)  # expect: GPU202
        weight = torch.where(returns > bound, 1.0, 0.1)
        self.step((weight * (values - returns) ** 2).mean())

    def by_rebinding(self, states, following, rewards):
        wanted = self.target(following)  # expect: GPU202
        wanted = (wanted * 0.99).detach()
        wanted = wanted + rewards
        self.step(nn.functional.mse_loss(self.online(states), wanted))

    def by_label(self, states, weak):
        _, label = self.target(weak).max(1)  # expect: GPU202
        self.step(nn.functional.cross_entropy(self.online(states), label))

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
