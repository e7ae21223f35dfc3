"""The keeper of the best weights says for one of its files where it goes, and not for the other."""

import os

import torch


class Keeper:
    def __init__(self, folder):
        self.folder = folder

    def last(self):
        return torch.load(os.path.join(self.folder, "last.pt"), map_location="cpu")

    def best_weights(self):
        return torch.load(os.path.join(self.folder, "best.pt"))  # low: GPU403
