"""Nothing enters the guard: the evaluation makes a graph for each mixture."""

import torch
from torch import nn


def separate(model, mixtures, metric):
    model.eval()
    scores = []
    for mixture, sources in mixtures:
        estimate = model(mixture.cuda())  # expect: GPU201
        scores.append(metric(estimate, sources.cuda()).mean().item())
    return sum(scores) / len(scores)


print(separate(nn.Conv1d(1, 512, 16).cuda(), mixtures, nn.L1Loss(reduction="none")))
