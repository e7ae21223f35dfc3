"""Moved before the loop, made on the device, or new in every step: batches, random numbers, lists that change."""

import random

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda")


def train(model: nn.Module, loader, optimizer, epochs):
    weights = torch.tensor([1.0, 2.0, 4.0]).to(device)
    for epoch in range(epochs):
        for inputs, labels in loader:
            model.to(device)
            inputs, labels = inputs.to(device), labels.to(device)
            noise = torch.randn(len(inputs), 8).to(device)
            chosen = torch.tensor([random.random() for _ in range(3)]).to(device)
            step = torch.tensor([len(inputs)]).cuda() + epoch
            out = model(inputs + noise) * chosen + step
            loss = F.cross_entropy(out, labels, weight=weights) + torch.zeros(1, device=device).sum()
            optimizer.zero_grad()
            loss = loss + torch.zeros(len(inputs)).cuda(non_blocking=True).sum()
            loss.backward()
            optimizer.step()
            kept = out.detach()
            kept = kept.to("cpu")


def train_on_dicts(model: nn.Module, loader, optimizer):
    for batch in loader:
        batch = {key: value.to(device) for key, value in batch.items()}
        x, y = (part.cuda() for part in (batch["x"], batch["y"]))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
