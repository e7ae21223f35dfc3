"""The collector runs every so many steps because it does not run by itself."""

import gc

from torch import nn
from torch.nn.functional import cross_entropy


def train(model: nn.Module, loader, optimizer):
    gc.disable()
    for index, (x, y) in enumerate(loader):
        loss = cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 50 == 0:
            gc.collect()
