"""A critic's values go into the rollout with their graphs, and all that is read of them is their data."""

import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 1024), nn.Tanh(), nn.Linear(1024, 1))

    def score(self, seen):
        return self.body(torch.as_tensor(seen, device="cuda"))


class Agent:
    def __init__(self, task, actor, critic: Pair):
        self.task, self.actor, self.critic = task, actor, critic.cuda()
        self.opt = torch.optim.Adam(self.critic.parameters())

    def iterate(self, seen, rounds=2048):
        rollout = []
        for _ in range(rounds):
            value = self.critic.score(seen)
            action = self.actor(seen)
            seen, reward = self.task.step(action)
            rollout.append([seen, value, reward])  # expect: GPU101
        rollout.append([seen, self.critic.score(seen), 0.0])
        gain, targets = 0.0, []
        for i in reversed(range(len(rollout) - 1)):
            seen, value, reward = rollout[i]
            following = rollout[i + 1][1]
            gain = reward + 0.99 * following.data - value.data
            targets.append(gain + value.data)
        return torch.stack(targets)
