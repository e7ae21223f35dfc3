"""Networks between the one that is trained and its loss: frozen by its own class, stepped by an optimizer of another method,
without weights, one that the same optimizer is given."""

import itertools

import torch
from torch import nn
from torchvision.models import vgg16


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = vgg16(weights="DEFAULT").features
        for p in self.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.body(x)


class Edges(nn.Module):
    def forward(self, x):
        return x[..., 1:] - x[..., :-1]


class Trainer:
    def __init__(self, generator, device):
        self.generator = generator.to(device)
        self.features = Features().to(device)
        self.edges = Edges()
        self.critic = vgg16(weights="DEFAULT").to(device)
        self.decoder = vgg16(weights="DEFAULT").to(device)
        self.optimizer = torch.optim.Adam(itertools.chain(self.generator.parameters(), self.decoder.parameters()))
        self.of_critic = torch.optim.Adam(self.critic.parameters())

    def step(self, noise, real):
        fake = self.generator(noise)
        loss = nn.functional.l1_loss(self.features(fake), real) + self.edges(fake).abs().mean()
        loss = loss - self.critic(fake).mean() + self.decoder(fake).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def judge(self, fake, real):
        loss = self.critic(fake.detach()).mean() - self.critic(real).mean()
        self.of_critic.zero_grad()
        loss.backward()
        self.of_critic.step()
