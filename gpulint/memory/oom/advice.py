"""What to do about an out-of-memory error: what settles the question, then what gained most where it was measured.

The sentences are in `advice.json`: `for` each kind of error in order, what one gained behind a bar, where it was measured ("capacity"
in another kind's list stands for the first five of those); and the `causes` that a traceback shows. It is read with this module: an
error at hand must not wait for a file.

Figures are from an NVIDIA H200 with torch 2.11: a 4-layer transformer language model, and batches of varying
length for the allocator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_WRITTEN: Final = json.loads(Path(__file__).with_name("advice.json").read_text(encoding="utf-8"))
_SHARED: Final = 5  # of what helps where capacity lacks helps elsewhere too


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `measured` is what it gained where it was measured, "" where it was not."""

    text: str
    measured: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.measured})" if self.measured else self.text


def _advice(listed: Sequence[str]) -> Iterator[Advice]:
    for one in listed:
        if one == "capacity":
            yield from _advice(_WRITTEN["for"]["capacity"][:_SHARED])
        else:
            yield Advice(*one.split(" | "))


METAL: Final = Advice(_WRITTEN["metal"])
# By the kind of an error; what to do first stands first.
FOR: Final = {kind: tuple(_advice(listed)) for kind, listed in _WRITTEN["for"].items()}

# -- what the traceback says ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cause:
    """What was going on when memory ran out, by the library's functions that a traceback passes through: `what` as it follows
    "raised", and what helps then. `files` are parts of their paths."""

    what: str
    files: str
    functions: str
    helps: str

    def is_in(self, file: str, function: str) -> bool:
        return function in self.functions.split() and any(part in file for part in self.files.split())


# The first that fits counts: an optimizer's state is copied by `deepcopy` while it is loaded.
_CAUSES: Final = tuple(Cause(**one) for one in _WRITTEN["causes"])


def cause_of(frames: Sequence[tuple[str, str]]) -> Cause | None:
    """The cause that a traceback's frames (file and function) show; None where they show none."""
    paths = [(file.replace("\\", "/"), function.rpartition(".")[2]) for file, function in frames]
    return next((cause for cause in _CAUSES if any(cause.is_in(*frame) for frame in paths)), None)
