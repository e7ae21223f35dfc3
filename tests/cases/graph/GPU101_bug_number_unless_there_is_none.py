"""The term of an old network is a number in the first task, and becomes one by `.item()` in all others."""

import torch
from torch.nn.functional import cross_entropy, mse_loss


def update(net, old, loader, opt, task):
    shown = kept = 0.0
    for x, y in loader:
        features = net(x.cuda())
        distilled = 0.0
        if task:
            with torch.no_grad():
                wanted = old(x.cuda())
            distilled = mse_loss(features, wanted)
        loss = cross_entropy(features, y.cuda()) + distilled
        opt.zero_grad()
        loss.backward()
        opt.step()
        shown += distilled.item() if task else distilled  # low: GPU101
        kept += loss  # expect: GPU101
    return shown / len(loader), kept / len(loader), torch.cuda.max_memory_allocated()
