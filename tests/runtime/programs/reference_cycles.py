# Each step leaves a reference cycle behind, which Python's collector takes away later.
# status: gc-garbage
import torch
from setting import batch, make_model
from torch import nn


class Node:
    def __init__(self, value):
        self.value = value
        self.itself = self


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        Node(loss.detach())


if __name__ == "__main__":
    train()
