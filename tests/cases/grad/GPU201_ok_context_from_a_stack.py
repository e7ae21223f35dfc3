"""What is put on the stack was handed over: whether it switches grad off is not for this file to say with confidence."""

import contextlib

import torch


def hits(network, loader, around, device=torch.device("cuda")):
    network.eval()
    right = 0
    stack = contextlib.ExitStack()
    for one in around:
        stack.enter_context(one)
    with stack:
        for images, labels in loader:
            right += (network(images.to(device)).argmax(1) == labels.to(device)).sum().item()  # low: GPU201
    return right
