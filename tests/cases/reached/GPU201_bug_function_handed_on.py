"""A function that is handed on to what leaves the mode alone, by callers that leave it alone."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 4096), nn.Linear(4096, 4096)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def learn(x, y):
    model.train()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def score(x, y):
    model.eval()
    return (model(x) - y).abs().mean().item()  # expect: GPU201


def over(loader, action):
    return sum(action(x.cuda(), y.cuda()) for x, y in loader)


for _ in range(10):
    over([], learn)
    over([], score)
