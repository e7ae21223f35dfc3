"""An actor and a critic of three linear layers, of which the environment says how wide the ends are."""

import copy

import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, observed, acted):
        super().__init__()
        self.first = nn.Linear(observed + acted, 400)
        self.second = nn.Linear(400, 300)
        self.last = nn.Linear(300, 1)

    def forward(self, state, action):
        hidden = torch.relu(self.first(torch.cat([state, action], 1)))
        return self.last(torch.relu(self.second(hidden)))


class Agent:
    def __init__(self, env):
        self.critic = Critic(env.observation_space.shape[0], env.action_space.shape[0]).cuda()
        self.slow = copy.deepcopy(self.critic)
        self.opt = torch.optim.Adam(self.critic.parameters(), 1e-3)

    def update(self, state, action, reward, following, next_action):
        goal = reward + 0.99 * self.slow(following, next_action).detach()  # low: GPU202
        loss = nn.functional.mse_loss(self.critic(state, action), goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
