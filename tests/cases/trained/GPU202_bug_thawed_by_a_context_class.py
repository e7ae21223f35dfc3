"""The context class thaws both networks; the slow value's graph is made, and nobody trains it."""

import torch
from torch import nn


class Thawed:
    def __init__(self, *networks):
        self.networks = networks

    def __enter__(self):
        for network in self.networks:
            network.requires_grad_(True)

    def __exit__(self, *problem):
        for network in self.networks:
            network.requires_grad_(False)


class Dreamer(nn.Module):
    def __init__(self, value: nn.Module, slow: nn.Module):
        super().__init__()
        self.value, self.slow = value, slow
        self.requires_grad_(False)

    def learn(self, states, rewards, opt):
        with Thawed(self.value, self.slow):
            wanted = rewards + 0.99 * self.slow(states[1:]).squeeze(-1).detach()  # expect: GPU202
            loss = nn.functional.mse_loss(self.value(states[:-1]).squeeze(-1), wanted)
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item()


def main(build, batches):
    agent = Dreamer(build(), build()).cuda()
    opt = torch.optim.Adam(agent.value.parameters())
    for states, rewards in batches:
        print(agent.learn(states.cuda(), rewards.cuda(), opt))
