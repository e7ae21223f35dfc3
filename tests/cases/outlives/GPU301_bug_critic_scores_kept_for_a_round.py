"""A class of losses keeps the graph in each of its backwards; the script that hands it the scores has them bound until the next
round has made new ones."""
# file: losses.py
class Hinge:
    def of_critic(self, real, fake):
        gap = (1 - real).relu().mean() + (1 + fake).relu().mean()
        gap.backward(retain_graph=True)  # low: GPU301
        return gap.item()

    def of_maker(self, fake):
        gap = -fake.mean()
        gap.backward(retain_graph=True)  # expect: GPU301
        return gap.item()
# file: train.py
import torch
from losses import Hinge
from torch import nn


class Game:
    def __init__(self, maker: nn.Module, critic: nn.Module):
        self.maker, self.critic = maker.cuda(), critic.cuda()
        self.loss = Hinge()
        self.first = torch.optim.Adam(maker.parameters())
        self.second = torch.optim.Adam(critic.parameters())

    def play(self, loader):
        for real in loader:
            noise = torch.randn(len(real), 128, device="cuda")
            with torch.no_grad():
                fake = self.maker(noise)
            self.second.zero_grad()
            self.loss.of_critic(self.critic(real.cuda()), self.critic(fake))
            self.second.step()
            self.first.zero_grad()
            verdict = self.critic(self.maker(noise))  # low: GPU202
            self.loss.of_maker(verdict)
            self.first.step()
