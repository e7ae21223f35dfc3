"""A test that fails with a gibibyte in a local, and is run again: the traceback must not keep it."""

from __future__ import annotations

import gc
import os

import pytest
import torch

SIZE = int(os.environ.get("SUITE_BIG", str(64 * 1024 * 1024)))


def alive() -> int:
    gc.collect()
    big = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor) and one.numel() >= SIZE]
    return len(big)


@pytest.fixture
def loaded(device: str) -> torch.Tensor:
    """What the next attempt needs is made while the one before should be gone."""
    if alive():
        pytest.fail("an attempt before this one still holds its tensor")
    return torch.zeros(SIZE, dtype=torch.uint8, device=device)


def test_that_fails_each_time(loaded: torch.Tensor) -> None:
    raise RuntimeError(f"meant to fail with {loaded.numel()} bytes")
