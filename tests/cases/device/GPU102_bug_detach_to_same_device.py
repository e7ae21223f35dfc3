import torch
from torch import nn

device = torch.device("cuda:1")


def collect(encoder: nn.Module, loader):
    encoder.to(device).eval()
    latents = []
    for x, _ in loader:
        z = encoder(x.to(device))  # expect: GPU201
        latents.append(z.detach().to(device))  # low: GPU102
    return torch.cat(latents)
