"""The collector is off for good. That costs memory where something makes cycles, which the code does not say."""

import gc

import torch
from torch import nn

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    for inputs in loader:
        loss = model(inputs.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(loader):
    gc.disable()  # low: GPU408
    train(loader)
