"""Steps in methods of their own, each of which goes backward itself: what they give back is only shown."""

import torch
from torch import nn


class Game:
    def __init__(self, painter: nn.Module, critic: nn.Module, loader):
        self.painter, self.critic, self.loader = painter.cuda(), critic.cuda(), loader
        self.of_painter = torch.optim.Adam(painter.parameters())
        self.of_critic = torch.optim.Adam(critic.parameters())

    def play(self, epochs):
        for _ in range(epochs):
            for real in self.loader:
                judged = self._train_critic(real.cuda())
                painted = self._train_painter(len(real))
                print(judged.item(), painted.item())

    def _train_critic(self, real):
        fake = self.painter(torch.randn(len(real), 64).cuda()).detach()  # maybe: GPU202
        loss = self.critic(fake).mean() - self.critic(real).mean()
        self.of_critic.zero_grad()
        loss.backward()
        self.of_critic.step()
        return loss

    def _train_painter(self, number):
        loss = -self.critic(self.painter(torch.randn(number, 64).cuda())).mean()
        self.of_painter.zero_grad()
        loss.backward()
        self.of_painter.step()
        return loss
