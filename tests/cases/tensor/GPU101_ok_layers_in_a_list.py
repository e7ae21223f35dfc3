"""A function inside another, named after a model, gives lists of layers; they are collected for the optimizer."""

import torch
from torch import nn


def build(model: nn.Module, loader):
    model.cuda()

    def flat_model(part):
        inner = list(part.children())
        return sum(map(flat_model, inner), []) if inner else [part]

    def groups(net):
        heads, rest = [], []
        for name, child in net.named_children():
            if "head" in name:
                heads += flat_model(child)
            else:
                rest += flat_model(child)
        return heads, rest

    heads, rest = groups(model)
    optimizer = torch.optim.SGD(
        [{"params": [p for m in heads for p in m.parameters()]}, {"params": [p for m in rest for p in m.parameters()]}],
        lr=0.1,
    )
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
