"""Forty small trainings, as a project's suite has them: what the plugin costs is measured on these."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn

DEVICE = os.environ.get("SUITE_DEVICE", "cpu")


@pytest.mark.parametrize("width", [128, 256])
@pytest.mark.parametrize("kind", ["mlp", "conv"])
@pytest.mark.parametrize("seed", range(10))
def test_loss_falls(kind: str, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    network = _network(kind, width).to(DEVICE)
    optimizer = torch.optim.AdamW(network.parameters())
    data = torch.randn(64, 3, 16, 16, device=DEVICE)
    losses = []
    for _ in range(20):
        loss = (network(data) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def _network(kind: str, width: int) -> nn.Module:
    if kind == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(768, width), nn.ReLU(), nn.Linear(width, 10))
    return nn.Sequential(
        nn.Conv2d(3, width // 8, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(width * 2, 10),
    )
