# holder: global list `CACHE`
# line: CACHE.append(model(x).detach())
# bytes: 512
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).to(
        device
    )


def batch():
    return torch.randn(16, 32).to(device), torch.randint(0, 4, (16,)).to(device)


CACHE = []


def features(model, x):
    with torch.no_grad():
        CACHE.append(model(x).detach())
    return CACHE[-1]


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    teacher = make_model()
    for _ in range(1000):
        x, _ = batch()
        loss = nn.functional.mse_loss(model(x), features(teacher, x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train()
