"""Grad is switched off for the rest of the script by entering the guard without `with`."""

import torch
from torch import nn


def separate(model, mixtures, metric):
    model.eval()
    torch.no_grad().__enter__()
    scores = []
    for mixture, sources in mixtures:
        estimate = model(mixture.cuda())
        scores.append(metric(estimate, sources.cuda()).mean().item())
    return sum(scores) / len(scores)


print(separate(nn.Conv1d(1, 512, 16).cuda(), mixtures, nn.L1Loss(reduction="none")))
