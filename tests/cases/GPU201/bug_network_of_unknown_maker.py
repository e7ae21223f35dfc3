"""A network that a function of another file makes, put into eval mode at construction; each method runs it with grad."""

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

    def run(self, rows):
        return self.network(rows).softmax(1)

    def grades(self, rows):
        return self.run(self.clean(rows)).argmax(1).tolist()  # expect: GPU201
