import numpy as np
import torch
from torch import nn


def ensemble_losses(models, opts, loader):
    table = [[] for _ in models]
    for x, y in loader:
        for k, (m, o) in enumerate(zip(models, opts)):
            l = nn.functional.mse_loss(m(x.cuda()), y.cuda())  # low: GPU505
            o.zero_grad()
            l.backward()
            o.step()
            table[k].append(l)  # expect: GPU101
    return np.array([[float(v) for v in row] for row in table])
