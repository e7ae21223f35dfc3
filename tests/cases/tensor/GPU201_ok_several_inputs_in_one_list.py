"""What takes a list of paths or of texts does everything by itself, under no_grad for all that is seen."""

import torch


def describe(network, folder, loader):
    network.eval()
    found = []
    for name, prompt in loader:
        picture = str(folder / name)
        scores, _ = network([picture, prompt.strip()])
        found.append(scores.argmax(-1).tolist())
    return found


def rank(network, texts, loader):
    network.eval()
    found = []
    for batch in loader:
        scores = network([batch])
        found.append(scores.argmax(-1).tolist())
    return found
