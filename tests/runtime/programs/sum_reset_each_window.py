# A running sum that is read and reset every five steps.
import torch
from setting import batch, make_model
from torch import nn


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    running = 0.0
    for step in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 5 == 4:
            print(running.item() / 5)
            running = 0.0


if __name__ == "__main__":
    train()
