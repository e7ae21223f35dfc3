import torch
from torch import nn


def train(model, loader, optimizer, trainer):
    """An fp16 optimizer that scales the loss itself, and a trainer with its own `_backward`."""
    crit = nn.CrossEntropyLoss(reduction="sum")
    shown = 0.0
    for x, y in loader:
        loss = crit(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        optimizer.backward(loss)
        optimizer.step()
        shown += loss.item()
    for x, y in loader:
        terms = []
        for head in trainer.heads:
            terms.append(crit(head(model(x.cuda())), y.cuda()))  # maybe: GPU303  # low: GPU505
        optimizer.zero_grad()
        trainer._backward(sum(terms))  # maybe: GPU303
        optimizer.step()
    return shown
