"""A policy that is asked once a step is no step of training: one call, one finding."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim


class Policy(nn.Module):
    def __init__(self, seen, options):
        super().__init__()
        self.first, self.second = nn.Linear(seen, 64), nn.Linear(64, options)

    def forward(self, x):
        return F.softmax(self.second(F.relu(self.first(x))), -1)


class Player:
    def __init__(self, seen, options):
        self.net, self.target = Policy(seen, options).cuda(), Policy(seen, options).cuda()
        self.opt = optim.Adam(self.net.parameters())

    def choose(self, state):
        state = torch.as_tensor(state).unsqueeze(0).cuda()
        scores = self.net(state)  # note: GPU201
        return np.argmax(scores.detach().cpu().numpy())

    def learn(self, batch):
        best = self.target(batch["next"].cuda()).max(1)[0].detach()  # expect: GPU202
        loss = F.mse_loss(self.net(batch["seen"].cuda()).max(1)[0], best)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


class Remembering(nn.Module):
    def __init__(self, seen, width, options):
        super().__init__()
        self.inner, self.cell, self.outer = nn.Linear(seen, width), nn.LSTM(width, width), nn.Linear(width, options)

    def forward(self, x, memory):
        found, memory = self.cell(F.relu(self.inner(x)), memory)
        return self.outer(found), memory

    def choose(self, x, memory):
        scores, memory = self.forward(x.unsqueeze(0), memory)  # the rest goes on with its graph
        return scores.detach().cpu().numpy().argmax(), memory


def play(env, player, buffer, n):
    net = Remembering(n, 64, 4).cuda()
    opt = optim.Adam(net.parameters())
    memory = None
    for step in range(1000):
        state = env.observe()
        env.act(player.choose(state))
        choice, memory = net.choose(torch.as_tensor(state).cuda(), memory)  # expect: GPU202|GPU103
        player.learn(buffer.sample())
        loss = net(buffer.sample()["seen"].cuda(), None)[0].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
