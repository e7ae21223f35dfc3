# holder: list `losses` in `train()`
# line: losses.append(loss)
# graph: yes
import torch
from setting import batch, encoder_and_head
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
    encoder, head, optimizer = encoder_and_head()
    losses = []
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(head(Scale.apply(encoder(x))), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)


train()
