"""Rounds that are only counted, each a step of an environment: one small state goes through the policy."""

import torch
from torch import nn


class Player:
    def __init__(self, policy: nn.Module):
        self.policy = policy.cuda()
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def play(self, env, state, rounds):
        for _ in range(rounds):
            action = self.policy(state).argmax(-1).item()
            state, reward, done, _ = env.step(action)
