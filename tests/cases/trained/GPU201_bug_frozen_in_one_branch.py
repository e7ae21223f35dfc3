"""The network is frozen in one branch only, in the other one it keeps its graph; and one that is thawed again."""

import torch
from torch import nn


class Parser:
    def __init__(self, archive: str, classes: int, size: int = 8):
        self.size = size
        if archive.endswith(".pt"):
            self.network = torch.jit.load(archive).eval().cuda()
        else:
            self.network = nn.Conv2d(3, classes, 1).eval().requires_grad_(False).to("cuda")

    def __call__(self, pictures):
        parsed = []
        for chunk in pictures.split(self.size):
            scores = self.network(chunk.cuda())  # expect: GPU201
            parsed.append(scores.argmax(1).cpu())
        return torch.cat(parsed)
