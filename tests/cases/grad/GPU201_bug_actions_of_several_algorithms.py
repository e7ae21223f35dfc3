"""Agents of several algorithms act by a method of one name: some who call it switch grad off, others train with what it
gives, and which of the agents they have is not shown."""

# file: agents.py
import torch
from torch import nn


class Values:
    def __init__(self, width, actions):
        self.net = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, actions)).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def act(self, seen, explore):
        return self.net(seen.cuda()).argmax(dim=-1, keepdim=True)  # low: GPU201


class Policy:
    def __init__(self, width, actions):
        self.net = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, actions), nn.Tanh()).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def act(self, seen, explore):
        return self.net(seen.cuda()) + (0.1 if explore else 0.0)


# file: runner.py
import torch


class Runner:
    def __init__(self, agents, critic, env):
        self.agents = agents
        self.critic = critic
        self.env = env

    @torch.no_grad()
    def act(self, seen, explore=True):
        return [agent.act(part, explore) for agent, part in zip(self.agents, seen)]

    def train(self, batches):
        for seen in batches:
            for agent, part in zip(self.agents, seen):
                action = agent.act(part, False)
                loss = -self.critic(part, action).mean()
                agent.optimizer.zero_grad()
                loss.backward()
                agent.optimizer.step()
