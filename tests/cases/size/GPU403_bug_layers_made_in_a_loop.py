"""A transformer whose widths and layers stand in its constructor: more than a gigabyte of weights, held by a name."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 16)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(x, x, x)[0]
        return x + self.narrow(torch.relu(self.wide(x)))


class Model(nn.Module):
    def __init__(self, width=1024, depth=24):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def train(path, loader):
    model = Model().cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    saved = torch.load(path)  # expect: GPU403
    model.load_state_dict(saved["model"])
    for x in loader:
        loss = model(x.cuda()).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save({"model": model.state_dict()}, path)
