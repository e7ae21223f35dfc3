# holder: list `norms` in `train()`
# line: norms.append(norm)
# bytes: 512
import torch
from setting import batch, training
from torch import nn


def train():
    model, optimizer = training()
    norms = []
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        norms.append(norm)


train()
