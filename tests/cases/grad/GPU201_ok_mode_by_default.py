"""The function's own default says that it evaluates; training asks for it in so many words."""

import contextlib

import torch
from torch import nn


def run(model, loader, criterion, optimizer=None, train=False):
    model.train(train)
    total, correct = 0.0, 0
    context = contextlib.nullcontext() if train else torch.no_grad()
    with context:
        for images, labels in loader:
            images, labels = images.cuda(), labels.cuda()
            logits = model(images)
            loss = criterion(logits, labels)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
            correct += (logits.argmax(1) == labels).sum().item()
    return total, correct


def report(model, loader):
    model.eval()
    return run(model, loader, nn.CrossEntropyLoss())


def main(model, train_loader, test_loader, optimizer):
    for _ in range(10):
        run(model, train_loader, nn.CrossEntropyLoss(), optimizer, train=True)
        report(model, test_loader)


main(nn.Linear(784, 10).cuda(), train_loader, test_loader, optimizer)
