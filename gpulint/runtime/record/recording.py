"""What a trial writes down of a run: how far it came and what it computed."""

from __future__ import annotations

from dataclasses import dataclass

from gpulint.runtime.record.records import Record


@dataclass(frozen=True, slots=True)
class Position(Record):
    """How far a run has come: `updates` are its optimizer steps (or `gpulint.step()`, or backwards where it has neither),
    `events` the outermost forwards and batches since the last of them."""

    updates: int
    events: int = 0


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


@dataclass(frozen=True, slots=True)
class Weight(Record):
    """One parameter or buffer: a checksum of its bits, and what to measure a difference by, its sum and its Euclidean norm."""

    name: str
    shape: tuple[int, ...]
    checksum: int
    sum: float
    norm: float


@dataclass(frozen=True, slots=True)
class Drawn(Record):
    """The state of one generator of random numbers at the end: python, numpy, torch or cuda:N."""

    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Recording(Record):
    """What one process computed.

    `losses` are the values that went backward, each backward's in order (of `autograd.grad` also what came of it), as sums; None
    for what could not be read. `norms` are the norms of what the optimizer optimizes, after each of its steps. Of both at most
    `MOST` are kept, `more` counts the others. `weights` are those at the end, of the optimizers and networks that were still
    alive.
    """

    position: Position
    losses: tuple[float | None, ...] = ()
    norms: tuple[float | None, ...] = ()
    more: int = 0
    weights: tuple[Weight, ...] = ()
    drawn: tuple[Drawn, ...] = ()
    notes: tuple[str, ...] = ()


MOST = 4096  # values of one series
