"""The same under a guard; a reward that the policy is to learn from; a reward model that an optimizer has."""

import torch
from torch import nn


class Preferring:
    def __init__(self, policy: nn.Module, reward_model: nn.Module, device="cuda"):
        self.policy = policy.to(device)
        self.reward_model = reward_model.to(device).eval()
        self.optimizer = torch.optim.AdamW(self.policy.parameters())

    def training_step(self, batch):
        with torch.no_grad():
            first = self.reward_model(batch["first"].cuda())
        better = first > batch["threshold"].cuda()
        loss = torch.where(
            better, -self.policy(batch["first"].cuda()), self.policy(batch["second"].cuda())
        ).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def climb(self, x):
        loss = -self.reward_model(self.policy(x.cuda())).mean()  # low: GPU202
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def learn(reward_model: nn.Module, loader):
    optimizer = torch.optim.AdamW(reward_model.cuda().parameters())
    for better, worse in loader:
        loss = -(reward_model(better.cuda()) - reward_model(worse.cuda())).sigmoid().log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
