"""One of several agents is run: each is trained by its own critic, whatever those of the others give."""

# file: single.py
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(300, 1)

    def forward(self, seen, done):
        return self.body(torch.cat([seen, done], 1))


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(200, 100).cuda(), Critic().cuda()
        self.optimizer = torch.optim.Adam([*self.actor.parameters(), *self.critic.parameters()])

    def learn(self, seen):
        loss = -self.critic(seen, self.actor(seen)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


# file: twin.py
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(300, 1), nn.Linear(300, 1)

    def forward(self, seen, done):
        both = torch.cat([seen, done], 1)
        return self.first(both), self.second(both)


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(200, 100).cuda(), Critic().cuda()
        self.optimizer = torch.optim.Adam([*self.actor.parameters(), *self.critic.parameters()])

    def learn(self, seen):
        one, other = self.critic(seen, self.actor(seen))
        loss = -torch.min(one, other).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


# file: main.py
import single
import torch
import twin


def main(which, batches):
    if which == "twin":
        agent = twin.Agent()
    elif which == "single":
        agent = single.Agent()
    for seen in batches:
        agent.learn(torch.tensor(seen).cuda())
