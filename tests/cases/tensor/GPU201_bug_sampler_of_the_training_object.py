"""A diffusion trainer written over an object that holds the network; sampling goes through two of its methods."""
# file: run.py
import torch
from torchvision.utils import save_image

from diffusion import Diffusion
from unet import UNet


def main(loader, steps=100_000):
    process = Diffusion(UNet(128), device="cuda")
    optimizer = torch.optim.Adam(process.denoiser.parameters(), lr=2e-4)
    for step, images in zip(range(steps), loader):
        loss = process.loss(images.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5_000 == 0:
            save_image(process.draw((16, 3, 64, 64)).cpu(), f"samples/{step}.png")  # expect: GPU201|GPU202@a
# file: diffusion.py
import torch
import torch.nn.functional as F


class Diffusion:
    def __init__(self, denoiser: torch.nn.Module, device, timesteps=1000):
        self.denoiser = denoiser.to(device)
        self.device = device
        self.alpha_bar = torch.linspace(0.9999, 0.001, timesteps, device=device)

    def loss(self, x):
        t = torch.randint(len(self.alpha_bar), (len(x),), device=self.device)
        a = self.alpha_bar[t].view(-1, 1, 1, 1)
        noise = torch.randn_like(x)
        return F.mse_loss(self.denoiser(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)

    def back_one(self, x, t):
        at = torch.full((len(x),), t, device=self.device)
        noise = self.denoiser(x, at)  # expect: GPU201|GPU202@a
        return x - (1 - self.alpha_bar[t]).sqrt() * noise

    def draw(self, shape):
        x = torch.randn(shape, device=self.device)
        for t in reversed(range(len(self.alpha_bar))):
            x = self.back_one(x, t)  # expect: GPU201|GPU202@a
        return x
# file: unet.py
from torch import nn


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.into, self.out = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        return self.out(self.into(x).relu() + t.view(-1, 1, 1, 1))
