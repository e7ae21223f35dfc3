"""A denoising diffusion step: a U-Net with attention at low resolution, AdamW, and an averaged copy of the weights."""

import argparse
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


def embedding(times: torch.Tensor, width: int) -> torch.Tensor:
    half = width // 2
    frequencies = torch.exp(-math.log(10000) * torch.arange(half, device=times.device) / half)
    angles = times[:, None].float() * frequencies[None]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, width: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.time = nn.Linear(width, outputs)
        self.second = nn.Sequential(
            nn.GroupNorm(32, outputs), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(hidden)


class Attention(nn.Module):
    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, channels)
        self.qkv = nn.Conv2d(channels, channels * 3, 1)
        self.out = nn.Conv2d(channels, channels, 1)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(batch, 3, self.heads, channels // self.heads, -1).unbind(1)
        scores = torch.einsum("bhcn,bhcm->bhnm", q, k) * (channels // self.heads) ** -0.5
        mixed = torch.einsum("bhnm,bhcm->bhcn", scores.softmax(dim=-1), v)
        return x + self.out(mixed.reshape(batch, channels, height, width))


class UNet(nn.Module):
    def __init__(self, channels: int = 128, scales: tuple[int, ...] = (1, 2, 2, 2)) -> None:
        super().__init__()
        width = channels * 4
        self.channels = channels
        self.time = nn.Sequential(nn.Linear(channels, width), nn.SiLU(), nn.Linear(width, width))
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        current, skips = channels, [channels]
        for level, scale in enumerate(scales):
            for _ in range(2):
                self.down.append(
                    nn.ModuleList(
                        [Block(current, channels * scale, width), self.look(level, channels * scale)]
                    )
                )
                current = channels * scale
                skips.append(current)
            if level < len(scales) - 1:
                self.down.append(nn.ModuleList([nn.Conv2d(current, current, 3, stride=2, padding=1)]))
                skips.append(current)
        self.middle = nn.ModuleList(
            [Block(current, current, width), Attention(current), Block(current, current, width)]
        )
        for level, scale in reversed(list(enumerate(scales))):
            for _ in range(3):
                self.up.append(
                    nn.ModuleList(
                        [
                            Block(current + skips.pop(), channels * scale, width),
                            self.look(level, channels * scale),
                        ]
                    )
                )
                current = channels * scale
            if level > 0:
                self.up.append(nn.ModuleList([nn.Conv2d(current, current, 3, padding=1)]))
        self.tail = nn.Sequential(nn.GroupNorm(32, current), nn.SiLU(), nn.Conv2d(current, 3, 3, padding=1))

    @staticmethod
    def look(level: int, channels: int) -> nn.Module:
        return Attention(channels) if level >= 2 else nn.Identity()

    def forward(self, x: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        time = self.time(embedding(times, self.channels))
        x = self.head(x)
        skips = [x]
        for layer in self.down:
            x = layer[1](layer[0](x, time)) if len(layer) == 2 else layer[0](x)
            skips.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, time)), time)
        for layer in self.up:
            if len(layer) == 2:
                x = layer[1](layer[0](torch.cat([x, skips.pop()], dim=1), time))
            else:
                x = layer[0](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.tail(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--size", type=int, default=64)
    args = parser.parse_args()
    device = torch.device("cuda")
    model = UNet().to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    betas = torch.linspace(1e-4, 0.02, 1000, device=device)
    kept = torch.cumprod(1 - betas, dim=0)
    for step in range(args.steps):
        images = torch.rand(args.batch, 3, args.size, args.size).to(device) * 2 - 1
        times = torch.randint(0, 1000, (args.batch,), device=device)
        noise = torch.randn_like(images)
        share = kept[times].view(-1, 1, 1, 1)
        noisy = share.sqrt() * images + (1 - share).sqrt() * noise
        loss = F.mse_loss(model(noisy, times), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters(), strict=False):
                mean.lerp_(weight, 1e-3)
        print(step, loss.item())


if __name__ == "__main__":
    main()
