"""A network that is not seen gives counts beside its output: tensors, as they are moved, but who counts leaves the graph behind.
What else it gives has the graph."""

import torch


def validate(wrapped, batches, classes):
    wrapped.eval()
    counts = torch.zeros(2, classes)
    right = 0
    for batch in batches:
        acc, batch_counts = wrapped(batch)  # maybe: GPU201
        batch_counts = batch_counts.cpu()
        counts += batch_counts[0:2, :]
        right += acc.mean().item()
    return counts, right


def measure(wrapped, batches, classes):
    wrapped.eval()
    totals = torch.zeros(2, classes)
    for batch in batches:
        _, parts = wrapped(batch)  # maybe: GPU201
        parts = parts.cpu()
        totals += parts[0:2, :]  # expect: GPU101
    print(totals)
