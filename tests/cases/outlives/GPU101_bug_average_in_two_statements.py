"""An average is made of two statements: it is one, told where the next round's begins; a part that begins anew is none."""

import torch.nn.functional as F


def train(model, loader, optimizer):
    average = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        older = 0.9 * average
        average = older + 0.1 * loss  # note: GPU101
        part = 0.5 * loss
        print((part + 0.5 * loss.detach()).item())
    return average


def best_of(model, loader, optimizer):
    average, best = 0.0, 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        old = average
        average = 0.9 * old + 0.1 * loss  # note: GPU101
        former = 0.5 * best + loss.exp()
        best = former + 0.1 * loss  # note: GPU101
    return average + best
