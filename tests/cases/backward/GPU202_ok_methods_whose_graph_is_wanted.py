"""Methods and helpers whose result is cut off in one place and goes on with its graph in another, or that do more."""

import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.down = nn.Conv2d(3, width, 4, 2, 1)
        self.up = nn.ConvTranspose2d(width, 3, 4, 2, 1)

    def read(self, pictures):
        return self.down(pictures)

    def write(self, content):
        return self.up(content)

    def guess(self, pictures):
        with torch.no_grad():
            return self.down(pictures)

    def kept(self, pictures):
        self.last = self.down(pictures)
        return self.last

    def learn(self, pictures):
        loss = (self.up(self.down(pictures)) - pictures).abs().mean()
        loss.backward()
        return loss


class Trainer:
    def __init__(self, critic: nn.Module):
        self.coder, self.locked, self.critic = Coder().cuda(), Coder().cuda(), critic.cuda()
        self.optimizer = torch.optim.Adam([*self.coder.parameters(), *self.critic.parameters()])
        self.lock([self.locked])

    def lock(self, networks):
        for network in networks:
            for weight in network.parameters():
                weight.requires_grad_(False)

    def step(self, a):
        self.optimizer.zero_grad()
        content = self.coder.read(a)
        made = self.coder.write(content)  # maybe: GPU202
        guessed = self.coder.guess(a).detach()
        kept = self.coder.kept(a).detach()
        learnt = self.coder.learn(a).detach()
        locked = self.locked.read(a).detach()
        loss = self.critic(made.detach()).mean() + self.coder.last.mean() + (content - guessed - kept - locked).abs().mean()
        loss.backward()
        self.optimizer.step()
        return learnt


def train(loader, critic):
    trainer = Trainer(critic)
    for a in loader:
        trainer.step(a.cuda())
