"""Every hundred steps the generator draws some pictures, beside the step that trains it."""

import torch
from torch import nn
from torchvision.utils import save_image


def train(generator: nn.Module, critic: nn.Module, loader, folder, device="cuda"):
    noise = torch.randn(16, 128, device=device)
    opt = torch.optim.Adam(generator.parameters())
    for step, real in enumerate(loader):
        loss = -critic(generator(torch.randn(len(real), 128, device=device))).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            save_image(generator(noise), f"{folder}/{step}.png")  # expect: GPU201|GPU202
