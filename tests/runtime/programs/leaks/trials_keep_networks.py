# Each trial leaves its network and its optimizer, whose states are those of ever more optimizers.
# holder: list `trials` in `main()`
# line: trials.append(trial())
# window: call of `trial()`
# bytes: 108544
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


def trial():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    train_some(model, optimizer, 4)
    return model, optimizer


def main():
    trials = []
    for _ in range(100):
        trials.append(trial())


if __name__ == "__main__":
    main()
