"""Predictions that are compared with targets are one tensor: reading them one by one waits once each."""
import torch


def train_epoch(model, loader, criterion, optimizer):
    hits, shown = 0, []
    for features, labels in loader:
        scores = model(features.cuda())
        loss = criterion(scores, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for row in range(len(scores)):
            hits += scores[row].item() > 0  # note: GPU504
        shown.append([score.item() for score in scores])  # note: GPU504
    return hits, shown
