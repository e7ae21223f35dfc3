"""Networks that are called out of a table: the loop that puts all of them into eval mode says what they are."""

import torch


def whole(models, scan, coords, size=10_000):
    for model in models.values():
        model.eval()
    latent = models["encoder"](scan.cuda())  # maybe: GPU201
    parts = []
    for start in range(0, coords.shape[1], size):
        gamma, beta = models["mapping"](latent)  # maybe: GPU201
        out = models["field"](coords[:, start : start + size].cuda(), gamma, beta)  # expect: GPU201
        parts.append(out.detach().cpu())
    return torch.cat(parts, 1)
