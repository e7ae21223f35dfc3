"""What tests of the verifier share."""

from collections.abc import Iterator

import pytest

from gpulint.runtime.parent import processes


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of the runs of a test no process is left at its end."""
    seen: set[str] = set()
    end_all = processes.end_all
    monkeypatch.setattr(processes, "end_all", lambda mark, group: (seen.add(mark), end_all(mark, group))[1])
    yield
    assert not any(processes.descendants(mark) for mark in seen)
