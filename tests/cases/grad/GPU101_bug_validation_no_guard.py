import torch
from torch import nn


def train_one_epoch(model, criterion, optimizer, loader, device):
    model.train()
    running = 0.0
    for x, y in loader:
        x = x.to(device)
        y = y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / len(loader)


def validate(model, criterion, loader, device):
    model.eval()
    val_loss = 0
    correct = 0
    for x, y in loader:
        x = x.to(device)
        y = y.to(device)
        pred = model(x)  # expect: GPU201
        val_loss += criterion(pred, y)  # expect: GPU101
        correct += (pred.argmax(1) == y).sum().item()
    return val_loss / len(loader), correct / len(loader.dataset)


def main(model, loaders, device="cuda"):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(10):
        tr = train_one_epoch(model, criterion, optimizer, loaders["train"], device)
        va, acc = validate(model, criterion, loaders["val"], device)
        print(epoch, tr, va, acc)
