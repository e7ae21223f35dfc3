"""The base class is not seen, but whoever calls this method has grad enabled: it runs a backward."""

import copy

import torch
import torch.nn.functional as F
from agents import Agent
from torch import optim


class Doubled(Agent):
    def __init__(self, first, device):
        super().__init__(device)
        self.net = first.to(device)
        self.slow = copy.deepcopy(first).to(device)
        self.optimizer = optim.Adam(first.parameters())

    def learn(self, states, actions, rewards, following):
        values = self.net(states).gather(1, actions)
        best = self.net(following).detach()  # expect: GPU202
        chosen = best.argmax(dim=1, keepdim=True)
        later = self.slow(following).detach()  # expect: GPU202
        loss = F.mse_loss(values, rewards + 0.99 * later.gather(1, chosen))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.slow.load_state_dict(self.net.state_dict())
