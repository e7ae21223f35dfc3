"""The collector is off because it stops ranks at different times; the program collects when it suits it."""

import gc

import torch
from torch import nn

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    gc.disable()
    for step, inputs in enumerate(loader):
        loss = model(inputs.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            gc.collect(1)
