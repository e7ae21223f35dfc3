"""A loop that ends early, of as many rounds as the text says: a few reads in each step."""

import torch
from torch import nn


def train(model: nn.Module, loader, optimizer):
    model.cuda()
    for inputs, labels in loader:
        scores = model(inputs.cuda())
        loss = nn.functional.cross_entropy(scores, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = scores.detach().mean(0)
        for place in range(3):
            if best[place] > 0.5:
                print(place)
                break
