# Every tenth step an evaluation that keeps numbers and lets go of its outputs.
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).to(
        device
    )


def batch():
    return torch.randn(16, 32).to(device), torch.randint(0, 4, (16,)).to(device)


def evaluate(model):
    model.eval()
    right, outputs = 0, []
    with torch.no_grad():
        for _ in range(8):
            x, y = batch()
            out = model(x)
            right += (out.argmax(-1) == y).sum().item()
            outputs.append(out.cpu())
    model.train()
    return right / 128


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    accuracy = []
    for step in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            accuracy.append(evaluate(model))


if __name__ == "__main__":
    train()
