"""A whole network comes out of a file: what is loaded is called."""

import torch
from torch.utils.data import DataLoader


def look(path, samples):
    net = torch.load(path)
    for inputs, targets in DataLoader(samples, batch_size=64):
        guess = net(inputs.cuda())  # expect: GPU201
        print(guess, targets)
