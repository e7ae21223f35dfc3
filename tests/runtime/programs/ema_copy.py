# An exponential moving average of the weights: one copy, updated in place.
import copy

import torch
from setting import batch, make_model
from torch import nn


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    average = copy.deepcopy(model)
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(average.parameters(), model.parameters(), strict=True):
                kept.mul_(0.99).add_(new, alpha=0.01)


if __name__ == "__main__":
    train()
