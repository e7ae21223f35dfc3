"""What the harness asks of a probe, on CUDA and on the CPU alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, get_args

from gpulint.runtime.record.peaks import Stretch
from gpulint.runtime.record.result import Place

# From when on a highest point counts: the last mark, where a line is entered that is measured, where a part of a step begins.
Since = Literal["mark", "line", "part"]


class Tops:
    """What counters of a highest point had reached before they began anew. They can do so only for all purposes at once."""

    def __init__(self) -> None:
        self._reached: dict[Since, dict[int, int]] = {since: {} for since in get_args(Since)}

    def keep(self, counter: int, reached: int) -> None:
        """This counter is about to begin anew."""
        for tops in self._reached.values():
            tops[counter] = max(tops.get(counter, 0), reached)

    def begin(self, since: Since) -> None:
        """All counters have begun anew, and for this purpose it counts from here on."""
        self._reached[since].clear()

    def of(self, since: Since, counter: int, reached: int) -> int:
        """How high it was, where the counter itself has `reached` so much since it began anew."""
        return max(reached, self._reached[since].get(counter, 0))


class Figures(NamedTuple):
    """One reading, in bytes; None where this probe cannot know. `peak` counts from the reading before."""

    allocated: int | None = None
    reserved: int | None = None
    active: int | None = None
    inactive_split: int | None = None
    retries: int | None = None
    ooms: int | None = None
    peak: int | None = None
    host_tensors: int | None = None


class Block(NamedTuple):
    """A live block of `size` bytes, born at `site` after mark number `epoch`."""

    site: int
    place: Place
    epoch: int
    size: int


Targets = Mapping[Hashable, Block]  # live storages by what identifies them
Key = Callable[[Any], Hashable | None]  # what identifies a tensor's storage; None where it has none


class Probe(Protocol):
    """Reads memory. `mark` is called at step boundaries and numbers the stretches between them (epochs). What a probe does not know
    or need is as it is here."""

    name: str
    active: bool = True  # False in a forked process
    first_use: int = 0  # the site at which CUDA was first used
    crests: Any = None  # where the lines of peaks are asked for

    def adopt(self, parameters_on_device: bool = False) -> None:
        """Take in the tensors that were there before."""
        return None

    def leave(self) -> None:
        """Stop watching and leave what was entered; only where nothing was entered after it and left open."""
        return None

    def join(self) -> None:
        """Watch the thread that calls this as well."""
        return None

    def load(self, change: int) -> None:
        """A DataLoader begins (1) to make a batch on this thread, or ends (-1)."""
        return None

    def keep_history(self) -> None:
        """Record all that happens, to the end, where that is a GPU's. Before `start`."""
        return None

    def raw_bytes(self) -> int:
        """What live storages take from malloc, near enough to subtract."""
        return 0

    def mark(self, wanted: bool) -> Figures:
        """Read everything and begin the next epoch. `wanted` asks for a reading that attribution can use."""

    def attribute(self, mark: int) -> None:
        """Make the mark that was taken last one that attribution can use, where nothing has happened since."""
        return None

    def settle(self) -> None:
        """Make `born` and `alive` tell the present."""
        return None

    def born(self, since: int) -> dict[Hashable, Block]:
        """The live storages born after mark `since`, by what `key` returns."""

    def alive(self) -> dict[Hashable, Block]:
        """All live storages on the device, likewise."""

    def series(self, site: int, place: Place, marks: list[int]) -> list[int] | None:
        """Live bytes of a birth site at each of the marks, or None where this was not recorded."""

    def resolution(self, marks: list[int]) -> list[int]:
        """Those of the marks at which the probe told births apart; all of them for a probe that sees each
        birth."""

    def key(self, tensor: Any) -> Hashable | None:
        """What identifies the tensor's storage, or None if it has none."""

    def allocated(self) -> int:
        """Bytes allocated now; cheap."""

    def peak(self, since: Since = "mark") -> int:
        """The highest `allocated` since the last mark, or the last `begin_peak` of this purpose."""

    def begin_peak(self, since: Since) -> int:
        """Begin anew for this purpose alone; what is allocated now."""

    def watch(self, closely: bool) -> None:
        """Whether what is born from here on will be attributed: only then need births be recorded with their lines."""
        return None

    def skip_to(self, mark: int) -> None:
        """Number the next mark `mark`, which is no less than it would be."""

    def free(self) -> int | None:
        """Bytes that could still be allocated, or None where this probe does not know."""
        return None

    def capacity(self) -> int | None:
        """Bytes that there are in all, or None where this probe does not know."""

    def follow_peaks(self) -> None:
        """From now on keep what the highest moments are made of; before `start`."""

    def peaks(self) -> dict[Stretch, tuple[int, dict[int, int]]]:
        """The highest moment of each stretch so far: the bytes then, and of them those born at each site. `crests.begin` says
        when another stretch begins."""

    def notes(self) -> list[str]:
        """What the reader of the figures has to know."""

    def stop(self) -> None:
        """Take every hook out again."""
