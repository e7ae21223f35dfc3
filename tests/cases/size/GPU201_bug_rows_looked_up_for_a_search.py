"""A search that looks up rows of a table and detaches them: what is saved of that are the numbers of the rows."""

import torch
from torch import nn


class Words(nn.Module):
    def __init__(self, known, width):
        super().__init__()
        self.table = nn.Embedding(known, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, numbers):
        return self.drop(self.table(numbers))


class Search:
    def __init__(self, known):
        self.words = Words(known, 300).cuda()

    def nearest(self, numbers):
        self.words.eval()
        for _ in range(len(numbers)):
            rows = self.words(numbers.cuda())  # low: GPU201
            numbers = rows.norm(dim=1).sort().indices.cpu()
        return numbers.tolist()
