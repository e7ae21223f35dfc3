"""The validation asks the helper for its training phase: the sum keeps every graph of the epoch."""

import torch
from torch import nn


def step(model, batch, phase):
    inputs, targets = batch[0].cuda(), batch[1].cuda()
    with torch.set_grad_enabled(phase == "train"):
        outputs = model(inputs)
        loss = nn.functional.mse_loss(outputs, targets)
    return loss


def fit(model, train_loader, valid_loader, optimizer):
    history = []
    for epoch in range(20):
        model.train()
        for batch in train_loader:
            optimizer.zero_grad()
            step(model, batch, "train").backward()
            optimizer.step()
        model.eval()
        running = 0
        for batch in valid_loader:
            running += step(model, batch, "train")  # expect: GPU101
        history.append(running.item() / len(valid_loader))
    return history


fit(nn.Linear(16, 4).cuda(), train_loader, valid_loader, optimizer)
