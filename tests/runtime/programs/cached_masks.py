# Masks for six lengths in an lru_cache: it fills up and stops.
import functools
import random

import torch
from setting import batch, device, make_model
from torch import nn


@functools.cache
def mask(length):
    return torch.ones(length, length, device=device).tril()


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lengths = random.Random(0)
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mask(lengths.choice([8, 16, 24, 32, 48, 64]))


if __name__ == "__main__":
    train()
