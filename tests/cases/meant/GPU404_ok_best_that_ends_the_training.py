"""A network by another name is used in the very round that gives it, or is made anew in each round, or ends the training."""

import torch
from torch import nn


def search(make, loader, score):
    best, best_model = 0.0, None
    for width in (64, 128, 256):
        model = make(width).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        found = score(model)
        if found > best:
            best = found
            best_model = model
    return best_model


def fit(model: nn.Module, loader, score, optimizer):
    best = 0.0
    for _ in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        found = score(model)
        if found > best:
            best_model = model
            torch.save(best_model.state_dict(), "best.pt")
        if found > 0.99:
            done = model
            break
    return done
