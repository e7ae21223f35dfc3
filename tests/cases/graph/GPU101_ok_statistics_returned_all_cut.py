"""A step for whoever wants it: what it returns are numbers, one detached tensor, and one made of what the step before it cut."""

import torch
from torch import nn


def contrastive_step(tower: nn.Module, batch, optimizer, scaler, temperature=0.07):
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
    a, b = a.detach(), b.detach()
    return {
        "loss": loss.detach(),
        "accuracy": (scores.argmax(1) == target).float().mean().item(),
        "alignment": (a * b).sum(1).mean(),
        "scale": scaler.get_scale(),
    }
