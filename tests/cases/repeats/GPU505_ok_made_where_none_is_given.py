"""A mask that a forward makes where it is given none: nothing shows that any step leaves it out."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.layer = nn.Linear(wide, wide)

    def forward(self, states, mask=None):
        if mask is None:
            mask = torch.ones(states.size(0), states.size(1)).to(states.device)  # low: GPU505
        return self.layer(states) * mask[..., None]


def train(loader, wide, masked):
    model = Encoder(wide).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for states, mask in loader:
        loss = model(states.cuda(), mask.cuda() if masked else None).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
