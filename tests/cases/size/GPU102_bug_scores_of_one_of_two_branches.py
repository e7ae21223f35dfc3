"""Rows of a few scores are kept on the device: one branch says that they are, the other keeps the same."""

import torch


@torch.no_grad()
def predict(loader, model, smooth=False):
    kept = []
    for x, _ in loader:
        if smooth:
            kept.append(model(x.cuda()))  # low: GPU102
        else:
            kept.append(torch.softmax(model(x.cuda()), dim=-1))  # low: GPU102
    return torch.cat(kept).cpu()
