import contextlib

import torch
from torch import nn


def run(model, loader, crit, opt=None, device="cuda"):
    train = opt is not None
    model.train() if train else model.eval()
    ctx = contextlib.nullcontext() if train else torch.no_grad()
    total = 0.0
    with ctx:
        for x, y in loader:
            out = model(x.to(device))
            loss = crit(out, y.to(device))
            if train:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item()
    return total / len(loader)


def probe(model, loader, grad_mode):
    guard = {"train": torch.enable_grad, "eval": torch.no_grad}[grad_mode]
    model.eval()
    acc = 0
    for x, y in loader:
        with guard():
            acc += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return acc


def linear(model, x):
    context = torch.inference_mode
    with context():
        return model(x)
