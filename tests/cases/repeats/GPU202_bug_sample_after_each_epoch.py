"""A look at the samples at the end of each epoch, with the graph that it makes."""

import torch
from torch import nn


def fit(painter: nn.Module, judge: nn.Module, loader, epochs, score):
    optimizer = torch.optim.Adam(painter.parameters())
    for _ in range(epochs):
        for real in loader:
            loss = score(judge(painter(torch.randn(len(real), 16).cuda())))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        look = painter(torch.randn(16, 16).cuda()).cpu().data.numpy()  # expect: GPU202
        print(look.mean())
