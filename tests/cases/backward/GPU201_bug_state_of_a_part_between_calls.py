"""A part of a network keeps what it gave last. Training goes backward through it; generation has its own calls of it, and only reads."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Conv1d(width, width, 3, padding=1)
        self.last = None

    def forward(self, x):
        if self.last is not None:
            x = x + self.last
        self.last = self.score(x)
        return self.last


class Speaker(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = Attention(width)
        self.head = nn.Conv1d(width, width, 3)

    def forward(self, x):
        return self.head(self.attention(x))

    def generate(self, x, steps):
        self.eval()
        found = []
        for _ in range(steps):
            x = self.attention(x)  # expect: GPU201
            found.append(x.detach().cpu().numpy())
        return found


def train(network, loader, optimizer):
    network.train()
    for x, y in loader:
        loss = (network(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(loader):
    network = Speaker(512).cuda()
    train(network, loader, torch.optim.Adam(network.parameters()))
    print(network.generate(torch.load("first.pt").cuda(), 500))


if __name__ == "__main__":
    main(torch.load("batches.pt"))
