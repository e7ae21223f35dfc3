import gc

import numpy as np
import torch
from torch import nn


def clear():
    gc.collect()
    torch.cuda.empty_cache()


class Generator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.net = width, nn.Linear(width, width)

    def forward(self, count):
        return self.net(torch.randn(count, self.width, device="cuda"))

    def generate(self, count):
        clear()
        self.eval()
        with torch.no_grad():
            return self(count).cpu().numpy()


class Tables:
    def __init__(self, width):
        self.model = Generator(width)

    def by_category(self, categories, sample):
        """A whole data set for each category."""
        found = []
        for category in range(categories):
            rows = self.model.generate(10_000)
            found.append(sample(rows, category))
        return np.stack(found)

    def teachers(self, number, make, labels):
        kept = []
        for position in range(number):
            rows = self.model.generate(10_000)
            teacher = make()
            teacher.fit(rows, labels[position])
            kept.append(teacher)
        return kept
