"""A step for whoever wants it: three of its results are numbers, the fourth has been forgotten."""

import torch
from torch import nn
from torch.cuda import amp  # maybe: GPU603


def contrastive_step(tower: nn.Module, batch, optimizer, scaler: amp.GradScaler, temperature=0.07):
    one, two = (x.cuda(non_blocking=True) for x in batch)
    with torch.autocast("cuda"):
        a, b = nn.functional.normalize(tower(one)), nn.functional.normalize(tower(two))
        scores = a @ b.t() / temperature
        target = torch.arange(len(scores), device=scores.device)
        loss = nn.functional.cross_entropy(scores, target)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    hits = (scores.argmax(1) == target).float().mean()
    return {  # low: GPU101
        "loss": loss.item(),
        "accuracy": hits.item(),
        "alignment": (a * b).sum(1).mean(),
        "scale": scaler.get_scale(),
    }
