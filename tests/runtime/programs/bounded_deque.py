# A deque with room for 100 entries: still filling while the steps are sampled, and bounded.
# status: bounded
from collections import deque

import torch
from setting import batch, make_model
from torch import nn


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    recent = deque(maxlen=100)
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss.detach())


train()
