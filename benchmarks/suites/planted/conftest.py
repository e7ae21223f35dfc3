"""Writes down what the plugin found out, for the script that started this suite."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

OUTCOMES: dict[str, list[str]] = {}


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


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    OUTCOMES.setdefault(report.nodeid, []).append(f"{report.when} {report.outcome}")


def pytest_terminal_summary(config: pytest.Config) -> None:
    told = config.pluginmanager.get_plugin("gpulint-telling")
    path = os.environ.get("SUITE_RESULT")
    if path and told is not None:
        found = {
            "outcomes": OUTCOMES,
            "leftovers": told.leftovers,
            "peaks": {key.subject: peak.to_json() for key, peak in told.peaks.measured.items()},
            "cards": sorted({key.card for key in told.peaks.measured}),
            "changes": [change.to_json() for change in told.peaks.changes],
        }
        Path(path).write_text(json.dumps(found, indent=1), encoding="utf-8")
