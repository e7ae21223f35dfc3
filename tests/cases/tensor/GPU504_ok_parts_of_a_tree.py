"""What no tensor has, as the number of a node, is read of no tensor; what lists hold is not read as tensors are."""

import torch
from torch import nn


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(64, 64, batch_first=True)
        self.decoder = nn.Linear(64, 64)

    def forward(self, x, grid):
        nodes = self.unfold(self.decoder(self.encoder(x)[0]))
        rows = [one for one in nodes if one.number > 0]
        total = 0
        for i in range(len(grid)):
            for j in range(len(grid[i])):
                total += float(grid[i][j])
        return rows, total

    def unfold(self, x):
        return self.build(x)


def train(loader):
    model = Tree().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, grid in loader:
        rows, total = model(x.cuda(), grid)
        loss = sum(rows) * total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
