"""What the critic is given is cut for its score, and not for the penalty, whose backward goes on into the generator."""

import torch
from torch import nn


class Pair:
    def __init__(self, generator: nn.Module, critic: nn.Module):
        self.generator, self.critic = generator.cuda(), critic.cuda()
        self.by_generator = torch.optim.Adam(self.generator.parameters(), 1e-4)
        self.by_critic = torch.optim.Adam(self.critic.parameters(), 1e-4)

    def penalty(self, real, fake):
        share = torch.rand(len(real), 1, 1, 1, device="cuda")
        between = share * real + (1 - share) * fake
        score = self.critic(between)  # expect: GPU203
        slope = torch.autograd.grad(score.sum(), between, create_graph=True)[0]
        return (slope.flatten(1).norm(2, dim=1) - 1).pow(2).mean()

    def cut_penalty(self, real, fake):
        share = torch.rand(len(real), 1, 1, 1, device="cuda")
        between = (share * real + (1 - share) * fake.detach()).requires_grad_()
        slope = torch.autograd.grad(self.critic(between).sum(), between, create_graph=True)[0]
        return (slope.flatten(1).norm(2, dim=1) - 1).pow(2).mean()

    def train(self, loader):
        for real in loader:
            real = real.cuda()
            fake = self.generator(torch.randn(len(real), 64, device="cuda"))
            loss = self.critic(fake.detach()).mean() - self.critic(real).mean()
            loss = loss + self.penalty(real, fake) + self.cut_penalty(real, fake)
            self.by_critic.zero_grad()
            loss.backward()
            self.by_critic.step()

            loss = -self.critic(self.generator(torch.randn(len(real), 64, device="cuda"))).mean()
            self.by_generator.zero_grad()
            loss.backward()
            self.by_generator.step()
