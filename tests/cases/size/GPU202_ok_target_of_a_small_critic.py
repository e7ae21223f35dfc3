"""The target of a critic with sixty-four hidden units: what one batch leaves in it are some kilobytes."""

import copy

import torch
from torch import nn

critic = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
target = copy.deepcopy(critic)
opt = torch.optim.Adam(critic.parameters(), 3e-4)


def update(states, rewards, following, discount=0.99):
    wanted = rewards + discount * target(following).detach()
    loss = nn.functional.mse_loss(critic(states), wanted)
    opt.zero_grad()
    loss.backward()
    opt.step()
    for slow, fast in zip(target.parameters(), critic.parameters()):
        slow.data.copy_(0.995 * slow.data + 0.005 * fast.data)
