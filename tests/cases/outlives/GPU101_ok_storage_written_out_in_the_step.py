"""Figures pile up in a storage of the module during a step, and are written out and forgotten at its end."""

import json

import torch
import torch.nn.functional as F

STORAGE = {"terms": [], "grid": []}


def note(name, value):
    STORAGE[name].append(value)


def write_out(stream):
    stream.write(json.dumps({name: [float(v) for v in values] for name, values in STORAGE.items()}) + "\n")
    for values in STORAGE.values():
        values.clear()


def train(net: torch.nn.Module, loader, opt, path):
    net.cuda()
    with open(path, "w") as stream:
        for views, target in loader:
            opt.zero_grad()
            for view in views:
                loss = F.mse_loss(net(view.cuda()), target.cuda())  # low: GPU505
                loss.backward()
                note("terms", loss)
            note("grid", sum(p.norm() for p in net.parameters()))
            opt.step()
            write_out(stream)
