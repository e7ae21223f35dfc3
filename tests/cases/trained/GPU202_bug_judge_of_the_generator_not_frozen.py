"""A network between the one that is trained and its loss, which no optimizer is given and nobody freezes: what it is given wants
a gradient, so that `no_grad` would be wrong."""

import torch
from torch import nn
from torchvision.models import vgg16


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 1024, 3), nn.ReLU(), nn.Conv2d(1024, 1024, 3))

    def forward(self, x):
        return self.body(x)


class Trainer:
    def __init__(self, generator, device):
        self.generator = generator.to(device)
        self.rebuild = Critic().to(device)
        self.optimizer = torch.optim.Adam(self.generator.parameters())

    def step(self, noise, real):
        fake = self.generator(noise)
        loss = nn.functional.l1_loss(self.rebuild(fake), real)  # expect: GPU202
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def stylize(transform: nn.Module, loader, device):
    judge = vgg16(weights="DEFAULT").features.to(device).eval()
    optimizer = torch.optim.Adam(transform.parameters())
    for image, wanted in loader:
        made = transform(image.to(device))
        loss = (judge(made) - wanted.to(device)).pow(2).mean()  # expect: GPU202
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
