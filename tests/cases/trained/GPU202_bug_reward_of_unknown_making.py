"""A reward model that comes from outside runs in the step that trains another network; what it says is data for the loss."""

import torch
from torch import nn


class Preferring:
    def __init__(self, policy: nn.Module, reward_model: nn.Module, device="cuda"):
        self.policy = policy.to(device)
        self.reward_model = reward_model.to(device).eval()
        self.optimizer = torch.optim.AdamW(self.policy.parameters())

    def training_step(self, batch):
        first = self.reward_model(batch["first"].cuda())  # low: GPU202
        loss = (self.policy(batch["first"].cuda()) - first).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
