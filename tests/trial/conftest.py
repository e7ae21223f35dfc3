"""One process that has imported torch, for all runs of these tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from forking import Zygote  # noqa: E402

if find_spec("torch") is None:
    collect_ignore = ["test_planted.py", "test_trying.py", "test_fixtures_run.py"]


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()
