"""Every tenth step the sum starts again with that step's loss: it never holds more than ten."""

import torch
from torch import nn


def learn(policy: nn.Module, buffer, steps):
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    window = 0.0
    for step in range(steps):
        states, targets = buffer.sample()
        loss = nn.functional.mse_loss(policy(states), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            window = loss
        else:
            window = window + loss
        if step % 10 == 9:
            print(window.item() / 10)
