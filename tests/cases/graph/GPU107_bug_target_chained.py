"""Nothing cuts the weights of the target network: each round adds a link to the chain."""

import copy

import torch
from torch import nn


class Agent:
    def __init__(self):
        self.critic = nn.Linear(24, 1).cuda()
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.critic.parameters())

    def follow(self, tau):
        for old, new in zip(self.target.parameters(), self.critic.parameters()):
            old.copy_(old * (1 - tau) + new * tau)  # expect: GPU107

    def learn(self, replay):
        for states, returns in replay:
            loss = nn.functional.mse_loss(self.critic(states), returns)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.follow(0.005)


Agent().learn(replay)
