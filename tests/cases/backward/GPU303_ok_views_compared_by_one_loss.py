"""Two views of a batch go through an encoder each, and one loss compares them: nothing is summed."""

import torch
from torch import nn


def pretrain(encoders: list[nn.Module], head: nn.Module, contrast, loader, views_of):
    parameters = [p for encoder in encoders for p in encoder.parameters()]
    optimizer = torch.optim.Adam([*parameters, *head.parameters()])
    for batch in loader:
        optimizer.zero_grad()
        embedded = []
        for view, encoder in zip(views_of(batch), encoders):
            embedded.append(head(encoder(view.cuda())))
        loss = contrast(embedded)
        loss.backward()
        optimizer.step()
