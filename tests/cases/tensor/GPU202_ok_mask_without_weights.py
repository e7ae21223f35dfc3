import torch
from torch import nn


class PairMask(nn.Module):
    """No parameters: one integer for each pair of kinds."""

    def __init__(self, kinds: int, excluded: list = ()):
        super().__init__()
        self.setup(kinds, excluded)

    def setup(self, kinds: int, excluded: list = ()):
        self.kinds = kinds
        self.pairs = set()
        for a, b in excluded:
            self.pairs.add((a, b))
        self.table = torch.ones(kinds, kinds, dtype=torch.int32).view(-1)
        self.nothing = len(self.pairs) == 0

    def forward(self, left, right):
        return self.table.to(left.device)[left * self.kinds + right]


class Block(nn.Module):
    def __init__(self, kinds: int):
        super().__init__()
        self.mask = PairMask(kinds)
        self.layer = nn.Linear(16, 16)

    def forward(self, x, neighbours, kinds):
        kept = self.mask(neighbours, kinds)
        neighbours = torch.where(kept != 0, neighbours, -1)
        return self.layer(x) * (neighbours >= 0).unsqueeze(-1)
