# holder: list `self.history` of `Trainer`
# line: self.history.append(out.detach())
# bytes: 512
import torch
from setting import batch, make_model
from torch import nn


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


train()
