# Each of six generators holds its last batch; an evaluation asks each once.
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model(width=64):
    return nn.Sequential(
        nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
    ).to(device)


def train_some(model, optimizer, steps=3):
    model.train()
    for _ in range(steps):
        x, y = torch.randn(16, 32, device=device), torch.randint(0, 4, (16,), device=device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def batches(rows):
    while True:
        batch = torch.randn(rows, 32, device=device)
        yield batch


def main():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loaders = [batches(128 * n) for n in range(1, 7)]
    for _ in range(100):
        train_some(model, optimizer)
        model.eval()
        with torch.no_grad():
            for loader in loaders:
                model(next(loader)).sum().item()


if __name__ == "__main__":
    main()
