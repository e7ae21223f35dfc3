# One batch an evaluation.
# holder: list `predictions` in `main()`
# line: predictions.append(model(torch.randn(4096, 32, device=device)))
# kind: eval
# window: evaluation
# bytes: 65536
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


def main():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    predictions = []
    for _ in range(100):
        train_some(model, optimizer)
        model.eval()
        with torch.no_grad():
            predictions.append(model(torch.randn(4096, 32, device=device)))


if __name__ == "__main__":
    main()
