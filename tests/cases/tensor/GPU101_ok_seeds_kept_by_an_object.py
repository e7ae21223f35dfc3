import torch
from torch import nn


class Direction:
    def __init__(self, seeds, direction):
        self.seeds, self.direction = seeds, direction

    def __call__(self, module: nn.Module):
        found = []
        for seed in self.seeds:
            seed = seed.to(module.weight.device)
            found.append(torch.mean(module.forward(seed), dim=0, keepdim=True))  # note: GPU201
        print(self.direction(torch.cat(found).cpu().detach().numpy()))
