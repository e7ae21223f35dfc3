"""The best weights are handed out as they come; a trainer in another file puts them into its network on the GPU."""
# file: keeping.py
import os

import torch


class Keeper:
    def __init__(self, folder):
        self.folder = folder

    def last_state(self):
        return torch.load(os.path.join(self.folder, "last.th"), map_location="cpu")

    def best_model_state(self):
        return torch.load(os.path.join(self.folder, "best.th"))  # expect: GPU403
# file: training.py
import torch
from keeping import Keeper


class Trainer:
    def __init__(self, model, folder):
        self.model, self.keeper = model.cuda(), Keeper(folder)

    def train(self, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        self.model.load_state_dict(self.keeper.best_model_state())
