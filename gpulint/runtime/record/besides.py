"""What one process saw besides the growth of its steps: memory that nothing touches, cycles, and other processes; and what it computed,
in a trial."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpulint.runtime.record.records import Record, Site

STOPPED = 0.25  # of what it grew by in the sampled steps: where all grow by less, it has stopped
FEWEST_STOPPED = 60  # steps that show it


@dataclass(frozen=True, slots=True)
class Untouched(Record):
    """Memory on the device that was alive while steps were watched, and that no operator of theirs read or wrote.

    `written` is the expression that holds it (`checkpoint['model']`), `text` says that for people, `file` and `line` where it is
    bound. `bytes` in `count` storages hang on it, or on `entries` of it where that is not 0. `freed` of them go with `del` of that
    expression, the rest is held by `others` too; None where that was not looked into. `born` are the lines that made it, most bytes first (`train.py:24`).
    """

    text: str
    written: str
    file: str
    line: int
    count: int
    bytes: int
    freed: int | None
    entries: int = 0
    others: tuple[str, ...] = ()
    born: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cycle(Record):
    """Memory that only the collector frees, by what ties it. `chain` are the objects of the cycle in words, each holding the next,
    `cut` is the edge to cut, and `file` and `line` where that is. `bytes` were freed with it in `count` storages born at the
    lines `born`; `times` there were such cycles."""

    chain: tuple[str, ...]
    cut: str
    file: str
    line: int
    count: int
    bytes: int
    born: tuple[str, ...] = ()
    times: int = 1


@dataclass(frozen=True, slots=True)
class Collections(Record):
    """How often Python's collector came while steps were sampled, to the second generation or to all that there is, and how many
    bytes on the device it `freed` then. `off`: the script has switched it off."""

    partial: int = 0
    full: int = 0
    freed: int = 0
    off: bool = False


@dataclass(frozen=True, slots=True)
class ProcessMemory(Record):
    """Host memory of a process that this one has started, at some moments: `sizes` in bytes (proportional set size: pages
    shared with others count in part), at `seconds` of the run and after so many `steps`. `loader` says that it is a worker of a
    DataLoader, of which `workers` were seen, and `lasts` that it outlives a pass; of another process `name` is the command."""

    pid: int
    loader: bool
    name: str
    lasts: bool
    workers: int
    seconds: tuple[float, ...] = ()
    steps: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerContext(Site):
    """A worker of a DataLoader, by its process, that began to use CUDA at a line of the user's."""

    pid: int


@dataclass(frozen=True, slots=True)
class Later(Record):
    """Steps that nobody watched, and what was allocated after them more than before, in bytes."""

    steps: int = 0
    grew: int = 0

    def stopped(self, rate: float, fewest: int = FEWEST_STOPPED) -> bool:
        """Whether what grew by so many bytes a step has stopped; `fewest` steps show it."""
        return self.steps >= fewest and self.grew < STOPPED * rate * self.steps


@dataclass(frozen=True, slots=True)
class Besides(Record):
    """`watched` are the steps whose operators were followed, by kind; `doubt` says what of them cannot be seen. `later` is the last
    part of the steps that came after the sampled ones."""

    watched: dict[str, int] = field(default_factory=dict)
    doubt: str = ""
    untouched: tuple[Untouched, ...] = ()
    cycles: tuple[Cycle, ...] = ()
    collections: Collections = field(default_factory=Collections)
    processes: tuple[ProcessMemory, ...] = ()
    later: Later = field(default_factory=Later)


@dataclass(frozen=True, slots=True)
class Position(Record):
    """How far a run has come: `updates` are its optimizer steps (or `gpulint.step()`, or backwards where it has neither),
    `events` the outermost forwards and batches since the last of them."""

    updates: int
    events: int = 0


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
