# holder: list `window` in `running()`
# line: window.append(value)
# bytes: 512
import torch
from setting import batch, make_model
from torch import nn


def running():
    window = []
    while True:
        value = yield len(window)
        window.append(value)


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    meter = running()
    next(meter)
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.send(loss.detach())


if __name__ == "__main__":
    train()
