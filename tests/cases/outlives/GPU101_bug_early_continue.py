import torch
import torch.nn.functional as F


def train(model, loader, opt, dev):
    tally = {"loss": 0.0, "skipped": 0}
    for x, y in loader:
        if len(x) < 2:
            tally["skipped"] += 1
            continue
        loss = F.cross_entropy(model(x.to(dev)), y.to(dev))
        if not torch.isfinite(loss):
            tally["skipped"] += 1
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        tally["loss"] += loss  # expect: GPU101
    return tally
