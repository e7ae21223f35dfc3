"""A step of another file goes backward itself and returns its losses as they are; the caller keeps them for a plot."""
# file: fit.py
import matplotlib.pyplot as plt
import torch

from steps import TripletStep


def fit(encoder: torch.nn.Module, loader, epochs):
    encoder.cuda()
    step = TripletStep(encoder, torch.optim.AdamW(encoder.parameters(), 1e-4))
    curve = []
    for _ in range(epochs):
        for anchor, same, other in loader:
            curve.append(step(anchor.cuda(), same.cuda(), other.cuda()))  # expect: GPU101
    plt.plot([float(row["triplet"]) for row in curve])
    plt.plot([float(row["norm"]) for row in curve])
    plt.savefig("curve.png")
# file: steps.py
import torch.nn.functional as F


class TripletStep:
    def __init__(self, encoder, optimizer, margin=0.3):
        self.encoder, self.optimizer, self.margin = encoder, optimizer, margin

    def __call__(self, anchor, same, other):
        a, p, n = (self.encoder(x) for x in (anchor, same, other))
        triplet = F.triplet_margin_loss(a, p, n, margin=self.margin)
        norm = a.pow(2).sum(1).mean()
        self.optimizer.zero_grad()
        (triplet + 1e-3 * norm).backward()
        self.optimizer.step()
        return {"triplet": triplet, "norm": norm}
