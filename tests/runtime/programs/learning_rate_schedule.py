# A scheduler wraps the optimizer's step and keeps numbers.
import torch
from setting import batch, make_model
from torch import nn


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=1000)
    rates = []
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])


if __name__ == "__main__":
    train()
