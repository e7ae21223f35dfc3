"""What a replay buffer gives one by one: where it is, nothing shows. What a policy draws from is read, and goes no further."""

import torch
import torch.nn as nn


def returns_of(batch, gamma):
    total = []
    for done in batch.done.long():
        total.append(gamma ** done.item())  # low: GPU504
    return total


class Agent:
    def __init__(self, buffer):
        self.policy = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 8)).cuda()
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        self.buffer = buffer

    def act(self, state):
        return torch.normal(self.policy(state), 0.1).cpu().numpy()  # note: GPU201

    def train(self, steps):
        for _ in range(steps):
            batch = self.buffer.sample()
            weights = torch.tensor(returns_of(batch, 0.99)).cuda()
            loss = (self.policy(batch.state.cuda()).mean(1) * weights).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
