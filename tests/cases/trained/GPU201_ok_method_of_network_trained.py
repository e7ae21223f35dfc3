"""The same method in training, and under its own guard."""

import torch
from torch import nn


class Topics(nn.Module):
    def __init__(self, words, topics):
        super().__init__()
        self.mean = nn.Linear(words, topics)

    def shares(self, counts):
        return torch.softmax(self.mean(counts), 1)

    @torch.no_grad()
    def labels(self, counts):
        return self.mean(counts).argmax(1)


def fit(documents, targets, device):
    model = Topics(2000, 50).to(device)
    model.eval()
    optimizer = torch.optim.Adam(model.parameters())
    for part, target in zip(documents, targets):
        loss = nn.functional.l1_loss(model.shares(part.to(device)), target.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [model.labels(part.to(device)).tolist() for part in documents]
