"""A loop of steps that validates now and then is no loop of phases, one that validates in each round is."""

import torch
from torch import nn


def validate(model: nn.Module, loader):
    losses = []
    with torch.no_grad():
        for x, y in loader:
            losses.append(nn.functional.cross_entropy(model(x.cuda()), y.cuda()).item())
    return sum(losses) / len(losses)


def train(model: nn.Module, loader, held_out, optimizer, every, last):
    step = 0
    while step < last:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                print(validate(model, held_out))
            del loss
            torch.cuda.empty_cache()  # expect: GPU501
            step += 1
