"""What the child writes down and the parent reads: plain data, no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any, Final

CHANNEL: Final = "GPULINT_FORECAST_CHANNEL"  # the file descriptor that the child writes its recording to
OPTIONS: Final = "GPULINT_FORECAST_OPTIONS"


class Phase(IntEnum):
    """When an allocation was made, or by whom."""

    FORWARD = 0  # with gradients wanted
    WITHOUT_GRAD = 1
    BACKWARD = 2
    OPTIMIZER = 3
    KERNEL = 4  # an operator's own, given back at its end
    LIBRARY = 5  # for as long as the process lives
    INPUT = 6  # copied from the host
    UNKNOWN = 7


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that the fake run cannot know, and where; `forecasting.py` has the words."""

    code: str
    file: str = ""
    line: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a step: the number of events before it."""

    events: int
    kind: str  # train, eval, explicit


@dataclass(slots=True)
class Recording:
    """A run. `events` are allocations (number, bytes, site, operator, phase), frees (the number) and 0 for `empty_cache`;
    `kinds` maps a kind to the numbers of the allocations known to be of it, and `modules` a module's name to those of its weights; `sites` are file, line, function, and the module that was running."""

    end: str  # finished, enough, time, raised, failed
    message: str
    torch: str
    python: str
    settings: str  # of the allocator, as the script has set them
    traceback: str = ""
    events: list[Any] = field(default_factory=list)
    sites: list[tuple[str, int, str, str]] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    kinds: dict[str, list[int]] = field(default_factory=dict)
    doubts: list[Doubt] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    modules: dict[str, list[int]] = field(default_factory=dict)

    def to_text(self) -> str:
        """As JSON, which `from_text` reads."""
        return json.dumps(self, default=_fields, separators=(",", ":"))

    @staticmethod
    def from_text(text: bytes) -> Recording:
        """Raises ValueError for what is none."""
        data = json.loads(text)
        data["marks"] = [Mark(**mark) for mark in data["marks"]]
        data["doubts"] = [Doubt(**doubt) for doubt in data["doubts"]]
        data["sites"] = [tuple(site) for site in data["sites"]]
        return Recording(**data)


def _fields(record: Any) -> dict[str, Any]:
    """Nothing is copied: there may be millions of events."""
    return {one.name: getattr(record, one.name) for one in fields(record)}
