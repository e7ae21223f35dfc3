"""The gradient of the picture is shown, and the loss goes backward afterwards: `create_graph` keeps its graph for that."""

import torch
from torch import nn


def train(loader, optimizer):
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 1, 3)).cuda()
    for pictures in loader:
        pictures = pictures.cuda().requires_grad_()
        loss = model(pictures).pow(2).mean()
        (shown,) = torch.autograd.grad(loss, pictures, create_graph=True)
        print(shown.norm().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
