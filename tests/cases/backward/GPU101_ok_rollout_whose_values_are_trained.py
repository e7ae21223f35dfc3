"""The same rollout with values that the loss is made of, or that are cut off when they are put by."""

import torch
from torch import nn


class Agent:
    def __init__(self, task, actor, critic: nn.Module):
        self.task, self.actor, self.critic = task, actor, critic.cuda()
        self.opt = torch.optim.Adam(self.critic.parameters())

    def iterate(self, seen, rounds=16):
        rollout = []
        for _ in range(rounds):
            value = self.critic.score(seen)
            seen, reward = self.task.step(self.actor(seen))
            rollout.append([seen, value, reward])
        loss = 0.0
        for i in range(len(rollout) - 1):
            _, value, reward = rollout[i]
            following = rollout[i + 1][1].data
            loss = loss + (reward + 0.99 * following - value).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def gather(self, seen, rounds=2048):
        rollout = []
        for _ in range(rounds):
            value = self.critic.score(seen).detach()
            seen, reward = self.task.step(self.actor(seen))
            rollout.append([seen, value, reward])
        return [value.data for _, value, _ in rollout]
