"""A detector gives a handful of losses: each is read once, for the log."""
import torch


def train_epoch(model, loader, optimizer, log):
    for images, targets in loader:
        losses = model([image.cuda() for image in images], targets)
        total = sum(losses)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        log.append([loss.item() for loss in losses])
