"""A network in eval mode that an attack takes gradients of, and one that grad is off for; one that must train."""

import torch
from torch.utils.data import DataLoader


def steepest(network, images, goal):
    assert network.training is False
    change = torch.zeros_like(images).cuda().requires_grad_()
    for _ in range(100):
        goal(network(images + change), change).sum().backward()  # low: GPU202
        change.data -= 0.1 * change.grad.sign()
        change.grad.zero_()
    return change.detach().cpu().numpy()


@torch.no_grad()
def rows_of(network, rows):
    assert isinstance(rows, DataLoader) and not network.training
    return [network(x.cuda()).argmax(1).cpu() for x, _ in rows]


def phases(network, rows, steps):
    assert network.training
    for x, y in rows:
        steps.see(network(x.cuda()), y)
