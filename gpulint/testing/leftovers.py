"""What tests left, as data that a worker hands on. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from gpulint.runtime.record.records import Record
from gpulint.units import format_bytes


@dataclass(frozen=True, slots=True)
class Leftover(Record):
    """What one test, or a fixture that ended with it, left behind. Sizes in bytes. `reason` says why it is allowed."""

    nodeid: str
    size: int
    tensors: int
    where: str
    owner: str = ""
    holders: tuple[str, ...] = ()
    births: tuple[str, ...] = ()
    reason: str = ""

    def lines(self) -> list[str]:
        """What is told about it, below its first line."""
        return [*(f"held by {holder}" for holder in self.holders), *self.births]

    def head(self) -> str:
        """How much and of whom."""
        number = f"{self.tensors} tensor{'s' * (self.tensors != 1)}"
        of = f"{self.owner}, which ended with this test, left" if self.owner else "this test left"
        return f"gpu_memory: {of} {format_bytes(self.size)} in {number} on {self.where}"


def report_of(item: pytest.Item, leftovers: Iterable[Leftover]) -> pytest.TestReport:
    """The error of a test that left something it may not."""
    wrong = [one for one in leftovers if not one.reason]
    text = "\n".join(line for one in wrong for line in [one.head(), *(f"  {said}" for said in one.lines())])
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=text,
        when="teardown",
        duration=0.0,
    )
