"""A function of the program takes a network out of a registry, which is not seen; the network makes its losses itself."""

import torch
from registry import MODELS


def build(settings):
    return MODELS.get(settings.name)(settings)


def main(settings, loader, others):
    model = build(settings)
    model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        model.train()
        total = 0.0
        for batch in loader:
            loss = model.compute_loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss  # note: GPU101
        model.eval()
        right = 0
        for x, y in others:
            scores = model(x.cuda())  # note: GPU201
            right += (scores.argmax(1) == y.cuda()).sum().item()
        print(total, right)
