"""A step of the critics: what the coders make by methods of theirs goes on cut off alone."""

import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, width, 4, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
        self.up = nn.Sequential(nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())

    def forward(self, pictures):
        return self.write(self.read(pictures)[0])

    def read(self, pictures):
        content = self.down(pictures)
        return content, content.mean((2, 3))

    def write(self, content):
        return self.up(content)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.judge = nn.Conv2d(3, 1, 4, 2)

    def loss(self, made, real):
        return (self.judge(made) ** 2).mean() + ((self.judge(real) - 1) ** 2).mean()


class Trainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Coder().cuda(), Coder().cuda()
        self.critic = Critic().cuda()
        self.known = Coder().cuda()
        for weight in self.known.parameters():
            weight.requires_grad = False
        coders = list(self.first.parameters()) + list(self.second.parameters())
        self.of_coders = torch.optim.Adam([weight for weight in coders if weight.requires_grad])
        self.of_critic = torch.optim.Adam(filter(lambda w: w.requires_grad, self.critic.parameters()))

    def step_of_coders(self, a, b):
        self.of_coders.zero_grad()
        content, _ = self.first.read(a)
        other, style = self.second.read(b)
        loss = (self.critic.judge(self.second.write(content)) - 1).pow(2).mean() + style.mean()
        loss = loss + (self.first.write(other) - self.known(a)).abs().mean()
        loss.backward()
        self.of_coders.step()

    def step_of_critic(self, a, b):
        self.of_critic.zero_grad()
        content, _ = self.first.read(a)  # expect: GPU202
        made = self.second.write(content)  # expect: GPU202
        again, _ = self.known.read(a)
        self.loss = self.critic.loss(made.detach(), b) + self.critic.loss(again.detach(), b)
        self.loss.backward()
        self.of_critic.step()


def train(loader):
    trainer = Trainer()
    for a, b in loader:
        trainer.step_of_critic(a.cuda(), b.cuda())
        trainer.step_of_coders(a.cuda(), b.cuda())
