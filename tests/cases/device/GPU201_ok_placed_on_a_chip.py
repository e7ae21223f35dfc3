"""A network that is put on something which is no GPU of torch's: a chip, or the CPU."""

import torch


def run(network, samples, chip="neurochip2kit"):
    device = "neurochip2kit"
    network.eval()
    network.to(device)
    hits = 0
    for sample, label in samples:
        hits += (network(sample).argmax(1) == label).sum().item()
    return hits
