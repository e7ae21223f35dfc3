# An lru_cache of 32 that gets a new entry in every step: growing now, but bounded.
# status: bounded
import functools

import torch
from setting import batch, device, make_model
from torch import nn


@functools.lru_cache(maxsize=32)
def positions(offset):
    return torch.arange(offset, offset + 64, device=device)


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        positions(step)


if __name__ == "__main__":
    train()
