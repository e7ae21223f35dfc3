import torch
from torch import nn, optim


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.ConvTranspose2d(512, 1024, 4), nn.ReLU(), nn.ConvTranspose2d(1024, 3, 4, 4))

    def forward(self, latents, noises):
        return self.body(latents[:, :, None, None] + noises[0])


def noises_of(sizes):
    found = []
    for size in sizes:
        found.append(torch.randn(1, 1, size, size, device="cuda"))
    return found


def project(weights, wanted, rounds):
    painter = Painter()
    painter.load_state_dict(torch.load(weights, map_location="cpu"))
    painter.eval().to("cuda")
    latents = torch.zeros(len(wanted), 512, device="cuda")
    latents.requires_grad = True
    noises = noises_of((4, 8))
    for one in noises:
        one.requires_grad = True
    optimizer = optim.Adam([latents] + noises, lr=0.1)
    for _ in range(rounds):
        made = painter(latents, noises)  # expect: GPU202
        optimizer.zero_grad()
        nn.functional.mse_loss(made, wanted).backward()
        optimizer.step()
    return latents.detach()
