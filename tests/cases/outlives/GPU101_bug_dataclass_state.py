from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class State:
    step: int = 0
    loss_sum: float = 0.0
    curve: list = field(default_factory=list)


def train(model, loader, opt, state: State):
    crit = nn.GaussianNLLLoss()
    for x, y in loader:
        mean, var = model(x.cuda())
        nll = crit(mean, y.cuda(), var)
        opt.zero_grad()
        nll.backward()
        opt.step()
        state.step += 1
        state.loss_sum += nll  # expect: GPU101
        state.curve.append(nll.item())
