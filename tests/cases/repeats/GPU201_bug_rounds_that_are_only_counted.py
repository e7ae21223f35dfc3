"""A rollout whose rounds are only counted: what goes through the policy may be one small state, or a batch."""

import torch
from torch import nn


class Trainer:
    def __init__(self, policy: nn.Module, judge):
        self.policy, self.judge = policy.cuda(), judge
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def rollout(self, tokens, rounds):
        worth = []
        for _ in range(rounds):
            logits = self.policy(tokens)  # low: GPU201
            tokens = logits.argmax(-1)
            worth.append(self.judge(tokens.cpu().numpy()))
        return worth

    def step(self, tokens, labels):
        loss = nn.functional.cross_entropy(self.policy(tokens).flatten(0, 1), labels.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
