# holder: list `seen` in the closure of `make_logger.log()`
# line: seen.append(value)
# bytes: 512
import torch
from setting import batch, make_model
from torch import nn


def make_logger():
    seen = []

    def log(value):
        seen.append(value)
        return len(seen)

    return log


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    log = make_logger()
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(loss.detach())


if __name__ == "__main__":
    train()
