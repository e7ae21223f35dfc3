"""`test_epoch` is no test of the program where the program calls it with a model and data."""

import torch
from torch import nn


def train_epoch(model, loader, optimizer, device):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
        optimizer.step()


def test_epoch(model, loader, device):
    model.eval()
    hits = 0
    for images, labels in loader:
        scores = model(images.to(device))  # expect: GPU201
        hits += (scores.argmax(1).cpu() == labels).sum().item()
    return hits / len(loader.dataset)


def main(model, train, held_out, device):
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(10):
        train_epoch(model, train, optimizer, device)
        print(epoch, test_epoch(model, held_out, device))
