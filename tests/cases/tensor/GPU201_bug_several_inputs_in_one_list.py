"""A network of several inputs takes them in a list."""

import torch


def evaluate(network, criterion, loader):
    network.eval()
    total = 0.0
    for image, question, target in loader:
        output, _ = network([image.cuda(), question.cuda()])  # expect: GPU201
        total += criterion(output, target.cuda()).item()
    return total


def train(fusion, criterion, optimizer, loader, prepare):
    for image, question, target in loader:
        image, question = prepare(image), prepare(question)
        output, _ = fusion([image, question], target)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test(fusion, criterion, loader, prepare):
    fusion.eval()
    total = 0.0
    for image, question, target in loader:
        image, question = prepare(image), prepare(question)
        output, _ = fusion([image, question], target)  # expect: GPU201
        total += criterion(output, target).item()
    return total
