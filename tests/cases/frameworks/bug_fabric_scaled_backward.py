"""Fabric with gradient accumulation: backward goes through a scaled loss, the history keeps the loss itself."""

import torch
import torch.nn.functional as F
from lightning.fabric import Fabric


def train(network, loader, every=4):
    fabric = Fabric(devices=2)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    network, optimizer = fabric.setup(network, optimizer)
    loader = fabric.setup_dataloaders(loader)
    history = []
    for number, (tokens, labels) in enumerate(loader):
        waiting = (number + 1) % every != 0
        with fabric.no_backward_sync(network, enabled=waiting):
            loss = F.cross_entropy(network(tokens), labels)
            fabric.backward(loss / every)
        if not waiting:
            optimizer.step()
            optimizer.zero_grad()
        history.append(loss)  # expect: GPU101
    return history
