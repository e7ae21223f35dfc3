"""What a run is asked for: how many steps, on what, which lines and functions are of interest, and how far it may go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpulint.runtime.record.besides import Position
from gpulint.runtime.record.records import Record

REACH = 60.0  # seconds a run may go on to reach lines with findings, at its own speed


@dataclass(frozen=True, slots=True)
class Lines(Record):
    """Places of interest in one file, absolute path: lines, each with its column from 1, or 0 for the whole line."""

    file: str
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Named(Record):
    """A function of the user's that was named as a step, or as a unit of which many come: where it is defined."""

    file: str
    line: int
    function: str
    kind: Literal["step", "unit"]


@dataclass(frozen=True, slots=True)
class Bound(Record):
    """Where one process of a run ends: that of a `rank`, or the worker that has the numbers `process`."""

    rank: int
    process: tuple[int, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class TrialOptions(Record):
    """A run that is to be compared with others. Random numbers are seeded with `seed`, by rank and worker. Where it `is_bound`, each
    process ends where `until` says, and by itself alone if that says nothing of it; otherwise as in any sampled run."""

    seed: int = 0
    is_bound: bool = False
    until: tuple[Bound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Record):
    """What the parent asks of the child. `warmup` None means: at least 3 steps, until optimizer state is
    constant. Once `steps` steps are sampled the script may go on for `reach` seconds more, until each of the
    lines in `awaited` has run, and an evaluation where the program looks as if it had one (`evaluates`). With `cut_epochs`
    epochs that have trained may end early for that. With `peaks` what the highest moments are made of is kept, and `limited` says
    that a limit on a GPU's memory makes `device` what it is, and not the user. In a `trial` places of interest are counted and nothing more. `home` is the
    folder of the script, or the one a module is run from. `snapshot` is the file for a memory snapshot, empty for none.
    `named` are functions whose calls are steps, or windows."""

    steps: int = 20
    warmup: int | None = None
    device: Literal["auto", "cuda", "cpu"] = "auto"
    module: bool = False
    lines: tuple[Lines, ...] = ()
    awaited: tuple[Lines, ...] = ()
    reach: float = 0.0
    cut_epochs: bool = False
    evaluates: bool = False
    peaks: bool = False
    limited: bool = False
    trial: TrialOptions | None = None
    home: str = ""
    snapshot: str = ""
    named: tuple[Named, ...] = ()


def join_lines(places: Iterable[tuple[str, int] | tuple[str, int, int]]) -> tuple[Lines, ...]:
    """Places of interest from (file, line) or (file, line, column), for `Options.lines`."""
    grouped: dict[str, set[tuple[int, int]]] = {}
    for file, line, *column in places:
        grouped.setdefault(file, set()).add((line, column[0] if column else 0))
    return tuple(Lines(file, tuple(sorted(found))) for file, found in sorted(grouped.items()))
