"""Fixtures of all scopes that hold memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from torch import nn


@pytest.fixture(scope="session")
def device() -> str:
    return os.environ.get("SUITE_DEVICE", "cpu")


@pytest.fixture(scope="session")
def network(device: str) -> nn.Module:
    """4 MiB that every test after the first may use: no test's leak."""
    return nn.Linear(1024, 1024, bias=False, device=device)


@pytest.fixture(scope="session")
def shelf() -> dict[str, torch.Tensor]:
    """What tests put here is the fixture's as long as it lives."""
    return {}


@pytest.fixture(scope="module")
def module_network(device: str) -> Iterator[nn.Module]:
    made = nn.Linear(1024, 512, bias=False, device=device)
    return made
