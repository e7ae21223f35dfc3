"""The same class, with scripts that let go of the scores, or go backward once more behind the call: how long they stay, or
whether the graph is needed, is not shown."""
# file: losses.py
class Hinge:
    def of_critic(self, real, fake):
        gap = (1 - real).relu().mean() + (1 + fake).relu().mean()
        gap.backward(retain_graph=True)  # expect: GPU301
        return gap.item()

    def of_maker(self, fake):
        gap = -fake.mean()
        gap.backward(retain_graph=True)  # low: GPU301
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
            self.first.zero_grad()
            verdict = self.critic(self.maker(noise))
            self.loss.of_maker(verdict)
            self.first.step()
            del verdict

    def play_again(self, loader):
        for real in loader:
            self.first.zero_grad()
            scores = self.critic(self.maker(torch.randn(len(real), 128, device="cuda")))
            self.loss.of_maker(scores)
            self.loss.of_critic(self.critic(real.cuda()), scores)
            self.first.step()
