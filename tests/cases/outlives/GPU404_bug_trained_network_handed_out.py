"""A copy of the trained network is handed out, with the gradients of its last step."""

from copy import deepcopy

import torch
from torch import nn


class Estimator:
    def __init__(self, build, device="cuda"):
        self._net = build().to(device)
        self._opt = torch.optim.Adam(self._net.parameters())

    def fit(self, loader, rounds):
        for _ in range(rounds):
            for x, y in loader:
                loss = nn.functional.mse_loss(self._net(x.cuda()), y.cuda())
                self._opt.zero_grad()
                loss.backward()
                self._opt.step()
        return deepcopy(self._net)  # low: GPU404
