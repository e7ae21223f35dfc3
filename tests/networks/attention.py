import copy
from functools import partial

import settings as hp
import torch
from parts.blocks import Wide, to_2tuple
from settings import Settings
from torch import nn


class Patches(nn.Module):
    def __init__(self, size=224, patch=16, inside=3, width=192):
        super().__init__()
        size, patch = to_2tuple(size), to_2tuple(patch)
        self.count = (size[0] // patch[0]) * (size[1] // patch[1])
        self.proj = nn.Conv2d(inside, width, kernel_size=patch, stride=patch)


class Block(nn.Module):
    def __init__(self, width, ratio=4.0, norm=nn.LayerNorm):
        super().__init__()
        self.norm = norm(width)
        self.qkv = nn.Linear(width, width * 3)
        self.proj = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, int(width * ratio)), nn.GELU(), nn.Linear(int(width * ratio), width)
        )


class Vision(nn.Module):
    def __init__(self, width=192, depth=6, norm=None):
        super().__init__()
        norm = norm or partial(nn.LayerNorm, eps=1e-6)
        self.patches = Patches(width=width)
        self.pos = nn.Parameter(torch.zeros(1, self.patches.count + 1, width))
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.blocks = nn.ModuleList([Block(width, norm=norm) for _ in range(depth)])
        self.head = nn.Linear(width, 1000)


class Configured(nn.Module):
    """All of its widths stand in another file."""

    def __init__(self, config=None):
        super().__init__()
        config = Settings(depth=3)
        self.layers = nn.ModuleList([nn.Linear(config.width, config.inner) for _ in range(config.depth)])
        self.heads = nn.Linear(config.width, config.heads)
        self.convs = nn.ModuleList(nn.Conv1d(a, b, 5) for a, b in zip(hp.widths[:-1], hp.widths[1:]))
        self.rnn = nn.GRU(hp.widths[-1], 64, num_layers=hp.layers)


class Stacked(nn.Module):
    """The same layer again and again."""

    def __init__(self, width=256, depth=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 8, 1024)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.extra = nn.ModuleList([copy.deepcopy(layer) for _ in range(2)])
        self.wide = Wide(width, 32)


class Halving(nn.Module):
    """A loop that goes on until a width is reached."""

    def __init__(self, size=64, stop=4):
        super().__init__()
        width, layers = 16, []
        while size > stop:
            layers.append(nn.Conv2d(width, width * 2, 4, 2, 1))
            width, size = width * 2, size // 2
        self.layers = nn.Sequential(*layers)
