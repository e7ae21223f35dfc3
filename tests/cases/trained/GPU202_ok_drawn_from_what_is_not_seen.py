"""An actor gives a distribution of a module that nobody sees: what is drawn from it may let gradients through."""

import distributions
import torch
import torch.nn as nn


class Actor(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, states):
        return distributions.Bounded(torch.tanh(self.body(states)))


class Agent:
    def __init__(self):
        self.actor, self.critic = Actor().cuda(), nn.Bilinear(512, 2, 1).cuda()
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters())
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters())

    def learn(self, states, actions, rewards):
        loss = (self.critic(states, actions) - rewards).pow(2).mean()
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

    def update(self, states):
        policy = self.actor(states)
        loss = -self.critic(states, policy.sample(clip=0.3)).mean()
        self.actor_optimizer.zero_grad()
        loss.backward()
        self.actor_optimizer.step()
        print(policy.entropy().mean().item())


def train(loader):
    agent = Agent()
    for states, actions, rewards in loader:
        agent.learn(states.cuda(), actions.cuda(), rewards.cuda())
        agent.update(states.cuda())
