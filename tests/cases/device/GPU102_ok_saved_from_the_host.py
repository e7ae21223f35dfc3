"""Saved piles that are on the host, of numbers, of the last batch alone, or of one batch at a time."""

import pickle

import torch
from torch import nn

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda().eval()


@torch.no_grad()
def copied(loader, path):
    outs = {}
    for n, x in enumerate(loader):
        outs[n] = {}
        outs[n]["out"] = net(x.cuda()).cpu()
    torch.save(outs, path)


@torch.no_grad()
def last_batch(loader, path, layers):
    outs = {layer: {} for layer in layers}
    for x in loader:
        for layer in layers:
            for half in (0, 1):
                out = net(x.cuda())
                outs[layer][half] = out
    torch.save(outs, path)


@torch.no_grad()
def batch_by_batch(loader, path):
    for n, x in enumerate(loader):
        outs = {}
        outs["out"] = net(x.cuda())
        torch.save(outs, f"{path}/{n}")


@torch.no_grad()
def losses(loader, path):
    found = []
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        found.append(loss)
    torch.save(found, path)


@torch.no_grad()
def texts(loader, path, captioner):
    found = {}
    for n, x in enumerate(loader):
        found[n] = captioner(x)
    with open(path, "wb") as out:
        pickle.dump(found, out)
