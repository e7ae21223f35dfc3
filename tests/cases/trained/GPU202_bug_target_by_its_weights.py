"""A target network of a class in another file, known by nothing but the weights that it is given."""

import torch
from models import Critic
from torch import nn


class Learner:
    def __init__(self, width, device):
        self.critic = Critic(width).to(device)
        self.older = Critic(width).to(device)
        self.older.load_state_dict(self.critic.state_dict())
        self.optimizer = torch.optim.Adam(self.critic.parameters())

    def update(self, states, following, rewards):
        wanted = rewards + 0.99 * self.older(following).detach()  # expect: GPU202
        loss = nn.functional.mse_loss(self.critic(states), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
