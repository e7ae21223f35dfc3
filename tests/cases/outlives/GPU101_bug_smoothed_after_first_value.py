"""A smoothed loss starts with the first loss and goes on with an average: the branch for the first is no reset."""

import torch
from torch import nn


class Agent:
    def __init__(self, policy: nn.Module, buffer, rate=0.9):
        self.policy = policy
        self.buffer = buffer
        self.rate = rate
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
        self.smooth = None

    def objectives(self, states, targets):
        error = (self.policy(states) - targets).pow(2)
        near = error[:, 0].mean()
        far = error[:, 1].mean()
        return near + far, near, far

    def learn(self, steps):
        for step in range(steps):
            losses = self.objectives(*self.buffer.sample())
            self.optimizer.zero_grad()
            losses[0].backward()
            self.optimizer.step()
            if self.smooth is None:
                self.smooth = losses[1]
            else:
                self.smooth = self.rate * self.smooth + (1 - self.rate) * losses[1]  # expect: GPU101|GPU107
            if step % 100 == 0:
                print(self.smooth.item())
