"""An actor gives a distribution of a module that nobody sees: what is drawn from it may let gradients through. A writer reads what it is given."""

import distributions
import torch
import torch.nn as nn
from tensorboardX import SummaryWriter

writer = SummaryWriter("runs")


class Actor(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(8, width, 3), nn.ReLU(), nn.Conv1d(width, 2, 3))

    def forward(self, states):
        return distributions.Bounded(torch.tanh(self.body(states)))


class Agent:
    def __init__(self):
        self.actor, self.critic = Actor().cuda(), nn.Conv1d(2, 1, 3).cuda()
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters())

    def update(self, states):
        policy = self.actor(states)
        loss = -self.critic(policy.sample(clip=0.3)).mean()
        self.actor_optimizer.zero_grad()
        loss.backward()
        self.actor_optimizer.step()
        writer.add_scalar("entropy", policy.entropy().mean())


def train(loader):
    agent = Agent()
    for states in loader:
        agent.update(states.cuda())
