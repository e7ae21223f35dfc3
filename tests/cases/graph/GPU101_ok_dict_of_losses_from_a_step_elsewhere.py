"""The same step with a line that turns its losses into numbers before they are returned."""
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
            curve.append(step(anchor.cuda(), same.cuda(), other.cuda()))
    plt.plot([row["triplet"] for row in curve])
    plt.plot([row["norm"] for row in curve])
    plt.savefig("curve.png")
# file: steps.py
import torch.nn.functional as F


class TripletStep:
    def __init__(self, encoder, optimizer, margin=0.3):
        self.encoder, self.optimizer, self.margin = encoder, optimizer, margin

    def __call__(self, anchor, same, other):
        a, p, n = (self.encoder(x) for x in (anchor, same, other))
        losses = {"triplet": F.triplet_margin_loss(a, p, n, margin=self.margin), "norm": 1e-3 * a.pow(2).sum(1).mean()}
        self.optimizer.zero_grad()
        sum(losses.values()).backward()
        self.optimizer.step()
        return {name: value.item() for name, value in losses.items()}
