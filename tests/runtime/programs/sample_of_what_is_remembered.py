# The function that steps draws from a buffer with a limit that is not reached: what it has at hand is the buffer's.
import random
from collections import deque

import torch
from setting import device, training

model, optimizer = training()
memory = deque(maxlen=600)


def learn():
    drawn = random.sample(memory, len(memory))
    model(torch.stack(drawn[:64])).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(120):
    memory.append(torch.randn(32, device=device))
    learn()
