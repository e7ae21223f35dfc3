"""The trainer evaluates whichever network it was given: the project has six, and none of their `predict` switches grad off."""
# file: trainer.py
import torch

from models import FM, MF, Deep, Pop, Seq, Wide

KINDS = {"fm": FM, "mf": MF, "deep": Deep, "pop": Pop, "seq": Seq, "wide": Wide}


class Trainer:
    def __init__(self, kind, width, device):
        self.model = KINDS[kind](width).to(device)
        self.device = device

    def evaluate(self, loader):
        self.model.eval()
        rows = []
        for users, items in loader:
            scores = self.model.predict(users.to(self.device), items.to(self.device))  # expect: GPU201
            rows.append(self._hits(scores))
        return sum(rows) / len(rows)

    def _hits(self, scores):
        return (scores.topk(10).indices == 0).any(1).float().mean().item()
# file: models.py
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.users, self.items = nn.Embedding(100_000, width), nn.Embedding(50_000, width)
        self.head = nn.Sequential(nn.Linear(2 * width, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1))

    def predict(self, users, items):
        raise NotImplementedError

    def forward(self, users, items):
        return self.head(torch.cat([self.users(users), self.items(items)], -1)).squeeze(-1)


class FM(Base):
    def predict(self, users, items):
        return self.forward(users, items)


class MF(Base):
    def predict(self, users, items):
        return (self.users(users) * self.items(items)).sum(-1)


class Deep(Base):
    def predict(self, users, items):
        return self(users, items).sigmoid()


class Pop(Base):
    def predict(self, users, items):
        return self.head(torch.cat([self.users(users), self.items(items)], -1))


class Seq(Base):
    def predict(self, users, items):
        return self(users, items) + self.items(items).mean(-1)


class Wide(Base):
    def predict(self, users, items):
        return self.forward(users, items).tanh()
