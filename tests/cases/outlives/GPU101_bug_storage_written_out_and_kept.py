"""The storage is written out in every step and never forgotten."""

import json

import torch
import torch.nn.functional as F

STORAGE = {"terms": [], "grid": []}


def note(name, value):
    STORAGE[name].append(value)


def write_out(stream):
    stream.write(json.dumps({name: float(values[-1]) for name, values in STORAGE.items()}) + "\n")


def train(net: torch.nn.Module, loader, opt, path):
    net.cuda()
    with open(path, "w") as stream:
        for x, target in loader:
            opt.zero_grad()
            loss = F.mse_loss(net(x.cuda()), target.cuda())
            loss.backward()
            note("terms", loss)  # expect: GPU101|GPU104@n
            note("grid", sum(p.grad.norm() for p in net.parameters()))
            opt.step()
            write_out(stream)
