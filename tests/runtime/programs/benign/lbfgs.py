# LBFGS keeps a history of up to 100 directions, and calls the model many times a step.
# status: bounded
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).to(
        device
    )


def batch():
    return torch.randn(16, 32).to(device), torch.randint(0, 4, (16,)).to(device)


def train():
    model = make_model()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
    x, y = batch()

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(1000):
        optimizer.step(closure)


if __name__ == "__main__":
    train()
