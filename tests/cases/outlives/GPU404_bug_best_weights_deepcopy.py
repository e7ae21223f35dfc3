import copy

import torch
from torch import nn


def train(model, loader, val, epochs):
    model.cuda()
    opt = torch.optim.Adam(model.parameters())
    best_acc, best = 0.0, copy.deepcopy(model.state_dict())  # low: GPU404
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            opt.step()
        acc = val(model)
        if acc > best_acc:
            best_acc = acc
            best = copy.deepcopy(model.state_dict())  # low: GPU404
    model.load_state_dict(best)
    return model
