"""The best network so far is another name for the one that trains on: who asks for it gets the last."""

import torch
from torch import nn


def fit(model: nn.Module, loader, score, optimizer):
    best, best_model = 0.0, None
    for _ in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        if (found := score(model)) > best:
            best, best_model = found, model  # expect: GPU404
    return best_model


def fit_and_save(model: nn.Module, loader, score, optimizer):
    best = 1e9
    for _ in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        found = score(model)
        if found < best:
            best = found
            best_model = model  # expect: GPU404
    torch.save(best_model.state_dict(), "best.pt")
