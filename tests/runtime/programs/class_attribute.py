# holder: list `Meter.values['loss']` of class `Meter`
# line: Meter.values.setdefault(name, []).append(value)
import torch
from setting import batch, make_model
from torch import nn


class Meter:
    values = {}  # noqa: RUF012

    @staticmethod
    def update(name, value):
        Meter.values.setdefault(name, []).append(value)


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        Meter.update("loss", loss.detach())


if __name__ == "__main__":
    train()
