"""What only goes to `torch.save` waits for it on the device, however deep in lists and dicts."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda().eval()


@torch.no_grad()
def listed(loader, path):
    outs = []
    for x in loader:
        out = net(x.cuda())
        outs.append(out)  # low: GPU102
    torch.save(outs, path)


@torch.no_grad()
def by_number(loader, path):
    outs = {}
    for n, x in enumerate(loader):
        out = net(x.cuda())
        outs[n] = {"embedding": out, "n": n}  # low: GPU102
    torch.save(outs, path)


@torch.no_grad()
def by_two_keys(loader, path, heads):
    outs = {}
    for n, x in enumerate(loader):
        outs[n] = {}
        for name, head in heads.items():
            out = net(head(x.cuda()))  # low: GPU505
            outs[n][name] = out  # low: GPU102
    torch.save(outs, path)


@torch.no_grad()
def by_label(loader, path):
    outs = {}
    for x, label in loader:
        out = net(x.cuda())
        outs.setdefault(label, []).append(out)  # low: GPU102
    torch.save({"outs": outs}, path)
