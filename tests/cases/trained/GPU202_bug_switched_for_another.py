"""Gradients are switched for the critic, and for a network that is frozen: neither says anything of the maker of the sample."""

import torch
import torch.nn.functional as F
from torchvision.models import resnet50, resnet101, vgg16


class Trainer:
    def __init__(self):
        self.maker, self.critic, self.scale = resnet101().cuda(), resnet50().cuda(), resnet50().cuda()
        self.seen, self.past = vgg16(weights="DEFAULT").cuda(), resnet101().cuda()
        for network in (self.seen, self.past):
            for weight in network.parameters():
                weight.requires_grad = False
        self.of_maker = torch.optim.Adam([w for w in self.maker.parameters() if w.requires_grad])
        self.of_critic = torch.optim.Adam(self.critic.parameters())

    def toggle_grad(self, networks, on):
        for network in networks:
            for weight in network.parameters():
                weight.requires_grad_(on)

    def judge(self, x, real):
        self.toggle_grad([self.critic], True)
        made = self.maker(x)  # expect: GPU202
        past = self.past(x)
        loss = F.softplus(self.critic(made.detach()[:, :, None])).mean() + F.softplus(-self.critic(real)).mean()
        loss = loss + past.detach().mean()
        self.of_critic.zero_grad()
        loss.backward()
        self.of_critic.step()

    def make(self, x):
        self.toggle_grad([self.critic], False)
        loss = F.softplus(-self.critic(self.maker(x))).mean()
        self.of_maker.zero_grad()
        loss.backward()
        self.of_maker.step()


def train(loader):
    trainer = Trainer()
    for x, real in loader:
        trainer.judge(x.cuda(), real.cuda())
        trainer.make(x.cuda())
