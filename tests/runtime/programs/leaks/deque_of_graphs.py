# A replay buffer with a limit whose entries keep the graphs of what they were computed from.
# holder: deque `memory` in `main()`
# line: memory.append((model(torch.randn(256, 32, device=device)).mean(), step))
# graph: yes
# limit: 15.31 GiB then
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
    from collections import deque

    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    memory = deque(maxlen=100_000)
    for step in range(100):
        memory.append((model(torch.randn(256, 32, device=device)).mean(), step))
        train_some(model, optimizer, 1)


if __name__ == "__main__":
    main()
