import torch
import torch.nn as nn
import torch.nn.functional as F


class Critic(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, state):
        return self.layers(state)


def soft_update(slow, fast, tau):
    for old, new in zip(slow.parameters(), fast.parameters()):
        old.data.copy_(old.data * (1 - tau) + new.data * tau)


class Agent:
    def __init__(self, width):
        self.critic = Critic(width).cuda()
        self.critic_slow = Critic(width).cuda()
        self.optimizer = torch.optim.Adam(self.critic.parameters())

    def learn(self, states, rewards, following):
        wanted = rewards + 0.99 * self.critic_slow(following)  # low: GPU202
        loss = F.mse_loss(self.critic(states), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        soft_update(self.critic_slow, self.critic, 0.01)


class Pair:
    """Two slow critics whose smaller answer counts, cut off at the end."""

    def __init__(self, width):
        self.one, self.two = Critic(width).cuda(), Critic(width).cuda()
        self.slow_one, self.slow_two = Critic(width).cuda(), Critic(width).cuda()
        self.optimizer = torch.optim.Adam([*self.one.parameters(), *self.two.parameters()])

    def learn(self, states, rewards, following):
        first = self.slow_one(following)  # low: GPU202
        second = self.slow_two(following)  # low: GPU202
        smaller = torch.min(first, second) - 0.1
        wanted = rewards + 0.99 * smaller
        loss = F.mse_loss(self.one(states), wanted.detach())
        loss = loss + F.mse_loss(self.two(states), wanted.detach())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
