# An lru_cache of 32 that gets a new entry in every step: growing now, but bounded.
# status: bounded
import functools

import torch
from setting import device, learn, training


@functools.lru_cache(maxsize=32)
def positions(offset):
    return torch.arange(offset, offset + 64, device=device)


model, optimizer = training()
for step in range(1000):
    learn(model, optimizer)
    positions(step)
