import torch
from torch import nn


def make_trainer(model, optimizer, criterion, device):
    total = 0.0
    count = 0

    def update(batch):
        nonlocal total, count
        x, y = (t.to(device) for t in batch)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss  # expect: GPU101
        count += 1
        return loss.item()

    def mean():
        return total / count

    return update, mean


def main(model, loader):
    update, mean = make_trainer(model.cuda(), torch.optim.Adam(model.parameters()), nn.L1Loss(), "cuda")
    for batch in loader:
        update(batch)
    print(mean())
