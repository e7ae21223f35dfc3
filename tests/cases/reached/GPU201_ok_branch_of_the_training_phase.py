"""The network is put into eval mode for both phases, and each phase has a forward of its own: that of the training is one."""

import torch
from torch.nn.functional import cross_entropy


def frozen_statistics(model, loader, optimizer, train, freeze=True):
    if train and not freeze:
        model.train()
    else:
        model.eval()
    total = 0
    for x, y in loader:
        if train:
            loss = cross_entropy(model(x.cuda()), y.cuda())
        else:
            with torch.no_grad():
                loss = cross_entropy(model(x.cuda()), y.cuda())
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


def the_other_way_round(model, loader, optimizer, train, freeze=True):
    if train and not freeze:
        model.train()
    else:
        model.eval()
    total = 0
    for x, y in loader:
        if not train:
            with torch.no_grad():
                scores = model(x.cuda())
        else:
            scores = model(x.cuda())
        loss = cross_entropy(scores, y.cuda())
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total
