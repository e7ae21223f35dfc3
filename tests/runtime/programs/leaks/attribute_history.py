# holder: list `self.history` of `Trainer`
# line: self.history.append(out.detach())
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


class Trainer:
    def __init__(self):
        self.model = make_model()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.history = []

    def step(self):
        x, y = batch()
        out = self.model(x)
        loss = nn.functional.cross_entropy(out, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.history.append(out.detach())


def train():
    trainer = Trainer()
    for _ in range(1000):
        trainer.step()


if __name__ == "__main__":
    train()
