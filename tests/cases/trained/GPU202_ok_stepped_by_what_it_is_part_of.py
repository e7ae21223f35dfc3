"""What a call of an agent runs inside is part of networks that its optimizers have."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Reader(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.rnn = nn.LSTM(width, width)
        self.out = nn.Linear(width, out)

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.out(y)


class Agent:
    def __init__(self, width):
        self.policy, self.critic = Reader(width, 4).cuda(), Reader(width, 1).cuda()
        self.policy_opt = optim.Adam(self.policy.parameters())
        self.critic_opt = optim.Adam(self.critic.parameters())

    def learn(self, x, y):
        loss = F.mse_loss(self.critic(x), y)
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        value = self.critic(torch.cat([x, self.policy(x)], -1))
        self.policy_opt.zero_grad()
        (-value.mean()).backward()
        self.policy_opt.step()
        return value.mean()


def play(batches, width):
    agent = Agent(width)
    for x, y in batches:
        _ = agent.learn(x.cuda(), y.cuda())
