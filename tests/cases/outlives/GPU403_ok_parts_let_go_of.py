"""The parts of a checkpoint are let go of, no step follows, or nothing is restored from them."""

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


def train_and_let_go(points, render, pictures, path, steps):
    (captured, first) = torch.load(path)
    points.restore(captured)
    del captured
    for step in range(first, steps):
        loss = (render(points.places) - pictures[step].cuda()).abs().mean()
        loss.backward()
        points.optimizer.step()


def look(points, path):
    (captured, first) = torch.load(path)
    points.restore(captured)
    print(first)


def describe(points, render, pictures, path, steps):
    (captured, first) = torch.load(path)
    points.describe(captured)
    for step in range(first, steps):
        loss = (render(points.places) - pictures[step].cuda()).abs().mean()
        loss.backward()
        points.optimizer.step()
