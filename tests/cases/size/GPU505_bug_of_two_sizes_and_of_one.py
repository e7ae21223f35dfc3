"""Made on the host and moved in each step: one-hot labels and masks, of two dimensions, and a number for each sample."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, words, wide):
        super().__init__()
        self.words = words
        self.head = nn.Linear(wide, words)

    def forward(self, states, wanted):
        scores = self.head(states).log_softmax(-1)
        labels = torch.zeros(wanted.size(0), self.words).to(scores.device).scatter_(1, wanted[:, None], 1.0)  # low: GPU505
        shape = [states.size(0), states.size(0)]
        mask = torch.triu(torch.ones(shape)).to(states.device)  # low: GPU505
        weights = torch.ones(wanted.size(0)).to(states.device)  # low: GPU505
        made = torch.zeros(wanted.size(0), self.words, device=states.device).scatter_(1, wanted[:, None], 1.0)
        return -(mask @ (labels + made) * scores).sum(1) @ weights


def train(loader, classes):
    model = Decoder(classes, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for states, labels in loader:
        loss = model(states.cuda(), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
