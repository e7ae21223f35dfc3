"""A list inside an object that the function is given: losses that are trained on."""

import torch


def collect_then_step(node, loader, optimizer):
    node.network.train()
    for images, labels in loader:
        node.terms.append(torch.nn.functional.cross_entropy(node.network(images), labels))  # maybe: GPU303
        if len(node.terms) == 4:
            optimizer.zero_grad()
            sum(node.terms).backward()
            optimizer.step()
            node.terms.clear()
