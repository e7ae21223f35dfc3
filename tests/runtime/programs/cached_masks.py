# Masks for six lengths in an lru_cache: it fills up and stops.
import functools
import random

import torch
from setting import device, learn, training


@functools.cache
def mask(length):
    return torch.ones(length, length, device=device).tril()


model, optimizer = training()
lengths = random.Random(0)
for _ in range(1000):
    learn(model, optimizer)
    mask(lengths.choice([8, 16, 24, 32, 48, 64]))
