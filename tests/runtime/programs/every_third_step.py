# holder: list `samples` in `train()`
# line: samples.append(x)
# share: third
import torch
from setting import batch, make_model
from torch import nn


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    samples = []
    for step in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            samples.append(x)


if __name__ == "__main__":
    train()
