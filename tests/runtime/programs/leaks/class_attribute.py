# holder: list `Meter.values['loss']` of class `Meter`
# line: Meter.values.setdefault(name, []).append(value)
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).to(
        device
    )


def batch():
    return torch.randn(16, 32).to(device), torch.randint(0, 4, (16,)).to(device)


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
