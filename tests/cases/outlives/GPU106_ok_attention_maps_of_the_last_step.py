"""The maps of a layer take the place of those of the time step before."""

import torch
from torch import nn


class MapKeeper(nn.Module):
    def __init__(self, denoiser: nn.Module):
        super().__init__()
        self.denoiser = denoiser
        self.maps = {}

    @torch.no_grad()
    def sample(self, shape, betas):
        x = torch.randn(shape, device="cuda")
        for t in reversed(range(len(betas))):
            noise, attention = self.denoiser(x, torch.full(shape[:1], t, device="cuda"))
            for layer, weights in enumerate(attention):
                self.maps[layer] = weights
            x = (x - betas[t] * noise) / (1 - betas[t]).sqrt()
        return x


def draw(denoiser, prompts):
    keeper = MapKeeper(denoiser).cuda()
    for k, _ in enumerate(prompts):
        image = keeper.sample((4, 3, 256, 256), torch.linspace(1e-4, 0.02, 1000).cuda())
        torch.save({"image": image.cpu(), "maps": {k: v.cpu() for k, v in keeper.maps.items()}}, f"{k}.pt")
