"""A step gives its loss and how sure it was, with the graph of the scores; both are kept, one by its name only."""

import torch
import torch.nn.functional as F


def step(model, inputs, labels):
    scores = model(inputs.cuda())
    loss = F.cross_entropy(scores, labels.cuda())
    return loss, scores.softmax(1).max()


def train(model: torch.nn.Module, loader, optimizer):
    model.cuda()
    right, history = 0, []
    for inputs, labels in loader:
        loss, hits = step(model, inputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += hits  # expect: GPU101
        history.append(hits)  # maybe: GPU101
    return right, history
