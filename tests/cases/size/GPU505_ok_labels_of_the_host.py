"""Labels of the host have to be brought to the GPU, and so may be what says where ones are put for them."""

import torch
from torch import nn


def train(model: nn.Module, loader, classes, optimizer):
    model.cuda()
    for states, labels in loader:
        wanted = torch.zeros(len(labels), classes).scatter_(1, labels[:, None], 1.0).cuda()
        loss = nn.functional.mse_loss(model(states.cuda()), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
