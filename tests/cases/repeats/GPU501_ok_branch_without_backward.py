"""The branch steps the optimizer every k batches, or only lets a bad batch go."""

import torch
from torch import nn


def train(net: nn.Module, loader, opt, k):
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(net(x.cuda()), y.cuda())
        if not torch.isfinite(loss):
            opt.zero_grad()
            torch.cuda.empty_cache()
            continue
        if i % k == 0:
            loss.backward()
            opt.step()
            opt.zero_grad()
            torch.cuda.empty_cache()  # maybe: GPU501
