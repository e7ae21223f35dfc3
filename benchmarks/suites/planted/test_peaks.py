"""Peaks that are known: what a test allocates is written in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

MIB = 1024 * 1024


def mib(number: int, device: str) -> torch.Tensor:
    return torch.zeros(number * MIB // 4, device=device)


@pytest.fixture
def input_of_test(device: str) -> Iterator[torch.Tensor]:
    return mib(6, device)


def test_that_is_not_measured(network: nn.Module) -> None:
    """Sets the session's network up, which is no less the later tests' for that."""
    assert network.weight.numel() == MIB


@pytest.mark.gpu_memory(max_peak="100MiB")
def test_three_at_once(device: str) -> None:
    """48 MiB."""
    first, second = mib(16, device), mib(16, device)
    third = first + second
    del first, second, third
    mib(32, device)


@pytest.mark.gpu_memory(max_peak="100MiB")
def test_with_its_fixture(input_of_test: torch.Tensor, device: str) -> None:
    """6 + 10 MiB."""
    assert mib(10, device) is not input_of_test


@pytest.mark.gpu_memory(max_peak="100MiB")
def test_with_the_network_of_the_session(network: nn.Module, device: str) -> None:
    """4 + 20 MiB, whether the network was there before or not."""
    mib(20, device)


@pytest.mark.gpu_memory(max_peak="20MiB")
def test_over_its_limit(network: nn.Module, device: str) -> None:
    """64 MiB of activations in `kept`: fails, and says so."""
    kept = []
    with torch.no_grad():
        for _ in range(8):
            kept.append(network(torch.ones(1024, 1024, device=device)) + 1)
    assert len(kept) == 8


@pytest.mark.gpu_memory(max_peak="100MiB", max_drift="0B", steps=8)
def test_steps_and_peak(device: str) -> None:
    """A drift of 1 MiB a step fails, beside a peak that does not."""
    STEPS.append(mib(1, device))


STEPS: list[torch.Tensor] = []


def test_fixture_asks(gpu_memory, device: str) -> None:  # type: ignore[no-untyped-def]
    """12 MiB, then 3 MiB after the peak began anew."""
    mib(12, device)
    assert gpu_memory.peak == 12 * MIB
    gpu_memory.assert_peak("12MiB")
    gpu_memory.reset_peak()
    mib(3, device)
    assert gpu_memory.peak == 3 * MIB
