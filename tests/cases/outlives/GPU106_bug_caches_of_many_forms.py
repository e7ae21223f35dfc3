"""Caches of a network's outputs: by key, by method, bounded or not, on the host or not, emptied or not."""

import functools
import os

import numpy as np
import torch
from torch import nn

_CACHE = {}
_TABLE = {}
ENCODER = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.LazyLinear(512)).cuda().eval()


@functools.lru_cache(maxsize=None)  # expect: GPU106
def encoded(index):
    picture = torch.load(f"{index}.pt").cuda()
    with torch.no_grad():
        return ENCODER(picture)  # maybe: GPU106


@functools.cache
def positions(length, width):
    return torch.arange(length, device="cuda").unsqueeze(1).expand(length, width)


@functools.lru_cache(maxsize=64)
def of_few(name):
    return ENCODER(torch.load(name).cuda())


def embed(name, picture):
    if name not in _CACHE:
        with torch.no_grad():
            _CACHE[name] = ENCODER(picture.cuda())  # maybe: GPU106
    return _CACHE[name]


def embed_on_host(name, picture):
    if name in _TABLE:
        return _TABLE[name]
    with torch.no_grad():
        result = ENCODER(picture.cuda()).cpu()
    _TABLE[name] = result
    return result


class Index:
    shared = {}
    limit = 100

    def __init__(self, model, device):
        self.model = model.to(device)
        self.device = device
        self.rows = {}
        self.texts = dict()
        self.recent = {}
        self.hidden = {0: None}
        self.steps = {}

    @torch.no_grad()
    def row(self, key, x):
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = self.model(x.to(self.device))  # maybe: GPU106, GPU102
        return row

    def text(self, key, x):
        try:
            return self.texts[key]
        except KeyError:
            self.texts[key] = self.model(x.to(self.device)).detach().cpu().numpy()
        return self.texts[key]

    def newest(self, key, x):
        if len(self.recent) > self.limit:
            self.recent.pop(next(iter(self.recent)))
        if key not in self.recent:
            self.recent[key] = self.model(x.to(self.device)).detach()
        return self.recent[key]

    def at_step(self, t, x):
        with torch.inference_mode():
            if t not in self.steps:
                self.steps[t] = self.model(x)
        return self.steps[t]

    def layer(self, number, x):
        self.hidden[number] = self.model(x, number)
        return self.hidden[number]

    def of_class(self, name, x):
        with torch.no_grad():
            Index.shared[name] = self.model(x.to(self.device)).mean(0)  # maybe: GPU106
        return Index.shared

    def reset(self):
        self.steps = {}
        self.texts.clear()

    @functools.lru_cache(maxsize=None)  # expect: GPU106
    def of_method(self, key):  # maybe: GPU106
        with torch.no_grad():
            return self.model(torch.load(key, map_location=self.device))  # maybe: GPU106

    @functools.lru_cache()  # maybe: GPU106
    def width(self, key):
        return os.path.getsize(key)


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.freqs = nn.Parameter(torch.randn(dim // 2))
        self.cached = {}
        self.seq_len_cached = 0
        self.cos = None

    def forward(self, x, seq_len):
        if seq_len not in self.cached:
            angles = torch.outer(torch.arange(seq_len, device=x.device), self.freqs)
            self.cached[seq_len] = torch.cat([angles.sin(), angles.cos()], dim=-1)  # maybe: GPU106, GPU101
        if seq_len > self.seq_len_cached:
            self.seq_len_cached = seq_len
            t = torch.arange(seq_len, device=x.device).float()
            self.cos = torch.einsum("i,j->ij", t, self.freqs).cos()  # maybe: GPU106, GPU101
        return x * self.cached[seq_len] + self.cos


def score(index, loader, names):
    found = {}
    for name, x in zip(names, loader):
        found[name] = index.row(name, x) + index.text(name, x)[0] + index.newest(name, x)  # maybe: GPU102
        index.at_step(1, x)
        index.reset()
        index.of_method(name)
        index.of_class(name, x)
    np.save("found.npy", {name: value.cpu().numpy() for name, value in found.items()})
