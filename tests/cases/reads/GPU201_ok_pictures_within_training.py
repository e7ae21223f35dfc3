"""Pictures under a guard, and of what the step has made anyway."""

import torch
from torch import nn
from torchvision.utils import save_image


def train(generator: nn.Module, critic: nn.Module, loader, folder, device="cuda"):
    noise = torch.randn(16, 128, device=device)
    opt = torch.optim.Adam(generator.parameters())
    for step, real in enumerate(loader):
        made = generator(torch.randn(len(real), 128, device=device))
        loss = -critic(made).mean()  # low: GPU202
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            save_image(made, f"{folder}/{step}_made.png")
            with torch.no_grad():
                save_image(generator(noise), f"{folder}/{step}.png")
