"""What a network gives step by step, in a list, is read one by one: each waits by itself."""

import torch
from torch import nn


class Pointer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(64, 64)
        self.head = nn.Linear(64, 100)

    def forward(self, x):
        chosen = []
        while len(chosen) < x.size(0):
            hidden, _ = self.cell(x)
            score = self.head(hidden)
            for one in chosen:
                score[:, one.item()] = -1e18  # note: GPU504
            chosen.append(torch.distributions.Categorical(logits=score).sample())
        return chosen


@torch.no_grad()
def answers(loader):
    network = Pointer().cuda().eval()
    found = []
    for x in loader:
        chosen = network(x.cuda())
        found.append([one.item() for one in chosen])  # note: GPU504
    return found
