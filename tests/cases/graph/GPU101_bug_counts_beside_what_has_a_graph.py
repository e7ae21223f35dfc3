"""A network that is not seen gives counts beside its output: tensors, as they are moved, but who counts leaves the graph behind.
What else it gives has the graph."""

import torch


def measure(wrapped, batches, classes):
    wrapped.eval()
    totals = torch.zeros(2, classes)
    for batch in batches:
        _, parts = wrapped(batch)  # maybe: GPU201
        parts = parts.cpu()
        totals += parts[0:2, :]  # expect: GPU101
    print(totals)
