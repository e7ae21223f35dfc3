"""A list inside an object that the function is given collects what the object's network makes."""

import torch


def encode_all(node, loader):
    node.network.eval()
    for images, labels in loader:
        code = node.network(images.cuda())  # expect: GPU201
        node.codes.append(code)  # expect: GPU101
        node.labels.append(labels)
