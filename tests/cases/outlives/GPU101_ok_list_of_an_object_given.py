"""A list inside an object that the function is given: codes without a graph, and losses that are trained on."""

import torch


@torch.no_grad()
def encode_all(node, loader):
    node.network.eval()
    for images, labels in loader:
        node.codes.append(node.network(images.cuda()).cpu())


def collect_then_step(node, loader, optimizer):
    node.network.train()
    for images, labels in loader:
        node.terms.append(torch.nn.functional.cross_entropy(node.network(images), labels))  # maybe: GPU303
        if len(node.terms) == 4:
            optimizer.zero_grad()
            sum(node.terms).backward()
            optimizer.step()
            node.terms.clear()
