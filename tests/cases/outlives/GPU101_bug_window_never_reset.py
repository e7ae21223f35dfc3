import torch
from torch import nn


def train(model, loader, opt, writer):
    loss_fn = nn.CrossEntropyLoss()
    running_loss = 0.0
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = loss_fn(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        running_loss += loss  # expect: GPU101
        if i % 100 == 99:
            writer.add_scalar("train/loss", running_loss / (i + 1), i)
