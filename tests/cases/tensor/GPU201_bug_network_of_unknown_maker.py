"""A network that a function of another file makes, put into eval mode at construction."""

import torch
from zoo import assemble


class Grader:
    def __init__(self, recipe, device):
        self.network = assemble(recipe)
        self.network.to(device)
        self.network.eval()
        self.device = device

    def clean(self, rows):
        return torch.as_tensor(rows, dtype=torch.float32, device=self.device)

    def grades(self, rows):
        scores = self.network(self.clean(rows))  # expect: GPU201
        return scores.softmax(1).argmax(1).tolist()
