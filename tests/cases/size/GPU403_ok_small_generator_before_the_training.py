"""The weights of a small generator, some megabytes, go straight into it, before anything else is on the GPU."""

import argparse

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, noise, width=64):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(noise, width * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(width * 4), nn.ReLU(True),
            nn.ConvTranspose2d(width * 4, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


def main(critic, loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--generator", default="")
    args = parser.parse_args()
    generator = Generator(100).cuda()
    if args.generator:
        generator.load_state_dict(torch.load(args.generator))
    opt = torch.optim.Adam(generator.parameters(), 2e-4)
    for epoch in range(25):
        for real in loader:
            loss = -critic(generator(torch.randn(len(real), 100, 1, 1, device="cuda"))).mean()  # low: GPU202
            opt.zero_grad()
            loss.backward()
            opt.step()
        torch.save(generator.state_dict(), f"generator-{epoch}.pth")
