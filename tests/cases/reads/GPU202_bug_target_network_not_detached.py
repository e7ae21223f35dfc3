"""The target network of a Q-learner: it is copied, never stepped, and backward runs through it."""

import torch
from torch import nn


class Values(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(observations, 256), nn.ReLU(), nn.Linear(256, actions))

    def forward(self, x):
        return self.layers(x)


class Learner:
    def __init__(self, observations, actions, device):
        self.online = Values(observations, actions).to(device)
        self.frozen_copy = Values(observations, actions).to(device)
        self.frozen_copy.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=3e-4)
        self.device = device

    def learn(self, memory, batch_size, gamma=0.99):
        states, actions, rewards, following, done = memory.sample(batch_size)
        following = torch.as_tensor(following, device=self.device)
        q = self.online(torch.as_tensor(states, device=self.device)).gather(1, actions)
        best = self.frozen_copy(following).max(1)[0].unsqueeze(1)  # low: GPU202
        loss = nn.functional.smooth_l1_loss(q, rewards + gamma * best * (1 - done))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
