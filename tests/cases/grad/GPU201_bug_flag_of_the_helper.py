"""A helper switches grad by a flag, and the validation loop passes it True: every batch of it makes a graph."""

import torch
from torch import nn


def compute_loss(model, batch, is_training):
    device = next(model.parameters()).device
    features, targets = batch["features"].to(device), batch["targets"].to(device)
    with torch.set_grad_enabled(is_training):
        logits = model(features)
        loss = nn.functional.cross_entropy(logits, targets)
    return loss, {"frames": features.size(0)}


def validate(model, loader):
    model.eval()
    total = 0.0
    for batch in loader:
        loss, info = compute_loss(model=model, batch=batch, is_training=True)  # note: GPU201@a
        total += loss.item() / info["frames"]
    return total


def train(model, loader, valid_loader, optimizer):
    for batch in loader:
        model.train()
        loss, _ = compute_loss(model, batch, True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return validate(model, valid_loader)


train(nn.Linear(80, 500).cuda(), loader, valid_loader, optimizer)
