# holder: list `losses` in `train()`
# line: losses.append(loss)
# graph: yes
import torch
from setting import batch, device
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def train():
    encoder = nn.Linear(32, 64).to(device)
    head = nn.Linear(64, 4).to(device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
    losses = []
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(head(Scale.apply(encoder(x))), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)


train()
