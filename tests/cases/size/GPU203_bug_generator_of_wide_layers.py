"""The same, where who makes the object gives it wide layers."""

# file: gan.py
import torch
import torch.nn.functional as F
from torch import nn


class Layers(nn.Module):
    def __init__(self, given, widths, wanted):
        super().__init__()
        layers = []
        for width in list(widths):
            layers += [nn.Linear(given, width), nn.ReLU()]
            given = width
        self.layers = nn.Sequential(*layers, nn.Linear(given, wanted))

    def forward(self, x):
        return self.layers(x)


class Tables:
    def __init__(self, noise=32, widths=(128, 128), critic_widths=(128,)):
        self.noise = noise
        self.widths = widths
        self.critic_widths = critic_widths

    def fit(self, loader, columns):
        generator = Layers(self.noise, self.widths, columns).cuda()
        critic = Layers(columns, self.critic_widths, 1).cuda()
        of_generator = torch.optim.Adam(generator.parameters())
        of_critic = torch.optim.Adam(critic.parameters())
        for rows in loader:
            fake = generator(torch.randn(len(rows), self.noise, device="cuda"))
            loss = F.softplus(-critic(rows.cuda())).mean() + F.softplus(critic(fake)).mean()  # expect: GPU203
            of_critic.zero_grad()
            loss.backward()
            of_critic.step()
            again = generator(torch.randn(len(rows), self.noise, device="cuda"))
            of_generator.zero_grad()
            F.softplus(-critic(again)).mean().backward()
            of_generator.step()
# file: main.py
from data import load
from gan import Tables

loader, columns = load("tables.csv")
Tables(widths=(4096, 4096, 4096)).fit(loader, columns)
