"""Waiting for the GPU."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.gpu_no_sync
def test_waits_twice(device: str) -> None:
    """Fails, and names the two lines."""
    x = torch.ones(1000, device=device)
    total = x.sum().item()
    assert total
    x.cpu()


@pytest.mark.gpu_no_sync(allowed=1)
def test_waits_once(device: str) -> None:
    """Passes."""
    assert torch.ones(1000, device=device).sum().item()
