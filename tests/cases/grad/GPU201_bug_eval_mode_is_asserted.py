"""Who asserts that a network is in eval mode has it in eval mode: here, in a method of a base class, in a helper."""


# file: base.py
import torch


class Search:
    def run(self, network, images, goal):
        assert network.training is False
        assert isinstance(images, torch.Tensor)


def check(network, loader):
    assert not network.training and len(loader) > 0


# file: searching.py
import numpy
import torch
from base import Search, check
from torch.utils.data import DataLoader


class RandomSearch(Search):
    rounds = 100

    def run(self, network, images, goal):
        super().run(network, images, goal)
        images = images.cuda()
        best = numpy.ones(len(images)) * 1e12
        for _ in range(self.rounds):
            change = torch.rand_like(images)
            logits = network.forward(images + change)  # note: GPU201
            error = goal(logits, change)
            for b in range(len(images)):
                best[b] = min(best[b], error[b].item())
        return best


class Steepest(Search):
    def run_ok(self, network, images, goal):
        super().run(network, images, goal)
        change = torch.zeros_like(images).cuda().requires_grad_()
        for _ in range(100):
            goal(network(images + change), change).sum().backward()  # low: GPU202
            change.data -= 0.1 * change.grad.sign()
            change.grad.zero_()
        return change.detach().cpu().numpy()


def test_rows(network, rows):
    assert isinstance(rows, DataLoader)
    assert network.training == False  # noqa: E712
    found = []
    for x, _ in rows:
        logits = network(x.cuda())  # expect: GPU201
        found.append(torch.softmax(logits, 1).detach().cpu().numpy())
    return numpy.concatenate(found)


def reconstruct(network, rows, drawn):
    check(network, rows)
    for x, _ in rows:
        drawn(network(x.cuda()).clamp(0, 1))  # low: GPU201


def phases_ok(network, rows, steps):
    assert network.training
    for x, y in rows:
        steps.see(network(x.cuda()), y)
