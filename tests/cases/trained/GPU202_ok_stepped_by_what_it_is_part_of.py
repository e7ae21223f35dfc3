"""Networks that some optimizer has: as part of what it steps, in a dict of parts, in a list of weights."""

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


def by_name(batches, n, m):
    enc, dec = nn.Linear(n, m).cuda(), nn.Linear(m, n).cuda()
    both = nn.ModuleDict({"enc": enc, "dec": dec})
    opt = optim.Adam(both.parameters())
    for x in batches:
        loss = F.mse_loss(dec(enc(x.cuda())), x.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


def extended(batches, n, m):
    enc, dec = Reader(n, m).cuda(), Reader(m, n).cuda()
    weights = list(enc.parameters())
    weights.extend(dec.parameters())
    opt = optim.Adam(weights)
    for x in batches:
        loss = F.mse_loss(dec(enc(x.cuda())), x.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


def by_hand(batches, n, m):
    enc, dec = Reader(n, m).cuda(), Reader(m, n).cuda()
    opt = optim.Adam(dec.parameters())
    for x in batches:
        loss = F.mse_loss(dec(enc(x.cuda())), x.cuda())
        enc.zero_grad()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for p in enc.parameters():
                p -= 0.1 * p.grad
