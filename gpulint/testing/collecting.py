"""Tells wrong markers when they are collected, at their tests' lines. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from gpulint.testing.asking import READERS, Misuse

_MOST: Final = 3  # wrong markers of one file that are told


def check(report: Any) -> None:
    """Make an error of a report on collected tests whose markers are wrong: what was collected does not run then."""
    wrong = list(dict.fromkeys(_wrong(report.result or ())))
    if wrong:
        more = [f"and {len(wrong) - _MOST} more"] if len(wrong) > _MOST else []
        report.outcome = "failed"
        report.longrepr = "\n".join([*wrong[:_MOST], *more])
        report.result = []


def _wrong(collected: Any) -> Iterator[str]:
    for item in collected:
        if not isinstance(item, pytest.Item):
            continue
        for name, read in READERS.items():
            for marker in item.iter_markers(name):
                try:
                    read(marker.args, marker.kwargs)
                except Misuse as error:
                    path, line, _ = item.reportinfo()
                    yield f"{_shown(item, str(path))}:{(line or 0) + 1}: @pytest.mark.{error}"


def _shown(item: pytest.Item, path: str) -> str:
    return item.nodeid.partition("::")[0] or path
