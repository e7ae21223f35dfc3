import numpy as np
import torch


def summarise(scores: np.ndarray, labels: torch.Tensor):
    """Both live on the host: `.item()` waits for nothing."""
    out = {}
    for row in scores:
        for k in range(len(row)):
            out.setdefault(k, []).append(row[k].item())
    for batch in labels.cpu().split(32):
        for y in batch:
            out.setdefault(y.item(), [])
    return out
