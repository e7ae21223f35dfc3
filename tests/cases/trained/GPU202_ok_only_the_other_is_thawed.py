"""The context thaws the value; the slow copy stays frozen, as everything is where the agent is made."""
# file: thawing.py
class Thawed:
    def __init__(self, network):
        self.network = network

    def __enter__(self):
        self.network.requires_grad_(requires_grad=True)

    def __exit__(self, *problem):
        self.network.requires_grad_(requires_grad=False)
# file: behaviours.py
import copy

import torch
from torch import nn

import thawing


class Behaviour(nn.Module):
    def __init__(self, value: nn.Module):
        super().__init__()
        self.value = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
        self.slow = copy.deepcopy(self.value)
        self.opt = torch.optim.Adam(self.value.parameters())

    def learn(self, states, wanted):
        with thawing.Thawed(self.value):
            found = self.value(states.detach())
            slow = self.slow(states.detach())
            loss = (found - wanted.detach()).pow(2).mean() + 0.1 * (found - slow.detach()).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()
