"""A checkpoint taken apart into names, which keep it while the steps run that follow."""

import torch
from torch import nn


class Points:
    def __init__(self, count):
        self.places = nn.Parameter(torch.rand(count, 3, device="cuda"))
        self.optimizer = torch.optim.Adam([self.places])

    def capture(self):
        return self.places, self.optimizer.state_dict()

    def restore(self, captured):
        self.places, state = captured
        self.optimizer.load_state_dict(state)

    def describe(self, captured):
        print(len(captured))


def train(points, render, pictures, path, steps):
    first = 0
    if path:
        (captured, first) = torch.load(path)  # low: GPU403
        points.restore(captured)
    for step in range(first, steps):
        loss = (render(points.places) - pictures[step].cuda()).abs().mean()
        loss.backward()
        points.optimizer.step()
