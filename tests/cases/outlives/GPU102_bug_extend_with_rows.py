import torch
from torch import nn


def score_pool(model: nn.Module, pool_loader, device):
    """Active learning: keeps a probability row of every unlabelled image."""
    model.to(device).eval()
    rows, ids = [], []
    with torch.no_grad():
        for x, i in pool_loader:
            p = model(x.to(device)).softmax(1)
            rows.extend(p)  # low: GPU102
            ids.extend(i.tolist())
    p = torch.stack(rows)
    return ids, (-(p * p.log()).sum(1)).cpu()
