"""A pytest plugin (`-p dumping`) that writes down, into the file SUITE_RESULT, what gpulint's plugin found out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_terminal_summary(config: pytest.Config) -> None:
    told = config.pluginmanager.get_plugin("gpulint-telling")
    path = os.environ.get("SUITE_RESULT")
    if path and told is not None:
        found = {
            "looked_at": told.looked_at,
            "leftovers": [one.to_json() for one in told.leftovers],
            "peaks": {key.subject: peak.to_json() for key, peak in told.peaks.measured.items()},
            "held": {
                test: one.to_json() if one is not None else None for test, one in told.peaks.held.items()
            },
        }
        Path(path).write_text(json.dumps(found, indent=1), encoding="utf-8")
