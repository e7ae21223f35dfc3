import torch
from torch import nn


def train(model, loader, opt, device):
    """Collects all outputs of the epoch for a metric."""
    crit = nn.CrossEntropyLoss()
    preds, targets = [], []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = crit(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        preds.append(out)  # expect: GPU101
        targets.append(y)  # maybe: GPU102
    acc = (torch.cat(preds).argmax(1) == torch.cat(targets)).float().mean()
    return acc.item()
