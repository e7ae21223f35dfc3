"""What the harness asks of a probe, on CUDA and on the CPU alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from gpulint.runtime.record.peaks import Stretch
from gpulint.runtime.record.result import Figures, Place

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


class Block(NamedTuple):
    """A live block of `size` bytes, born at `site` after mark number `epoch`."""

    site: int
    place: Place
    epoch: int
    size: int


Targets = Mapping[Hashable, Block]  # live storages by what identifies them
Key = Callable[[Any], Hashable | None]  # what identifies a tensor's storage; None where it has none


class Probe:
    """Reads memory. `mark` is called at step boundaries and numbers the stretches between them (epochs). This one knows nothing: it
    is there until the script imports torch; and what others do not know or need is as it is here."""

    name: str = "none"
    active: bool = True  # False in a forked process
    first_use: int = 0  # the site at which CUDA was first used
    crests: Any = None  # where the lines of peaks are asked for

    def adopt(self, parameters_on_device: bool = False) -> None:
        """Take in the tensors that were there before."""

    def leave(self) -> None:
        """Stop watching and leave what was entered; only where nothing was entered after it and left open."""

    def join(self) -> None:
        """Watch the thread that calls this as well."""

    def load(self, change: int) -> None:
        """A DataLoader begins (1) to make a batch on this thread, or ends (-1)."""

    def keep_history(self) -> None:
        """Record all that happens, to the end, where that is a GPU's. Before `start`."""

    def raw_bytes(self) -> int:
        """What live storages take from malloc, near enough to subtract."""
        return 0

    def mark(self, wanted: bool) -> Figures:
        """Read everything and begin the next epoch. `wanted` asks for a reading that attribution can use."""
        return Figures()

    def attribute(self, mark: int) -> None:
        """Make the mark that was taken last one that attribution can use, where nothing has happened since."""

    def settle(self) -> None:
        """Make `born` and `alive` tell the present."""

    def born(self, since: int) -> dict[Hashable, Block]:
        """The live storages born after mark `since`, by what `key` returns."""
        return {}

    def alive(self) -> dict[Hashable, Block]:
        """All live storages on the device, likewise."""
        return {}

    def series(self, site: int, place: Place, marks: list[int]) -> list[int] | None:
        """Live bytes of a birth site at each of the marks, or None where this was not recorded."""
        return None

    def resolution(self, marks: list[int]) -> list[int]:
        """Those of the marks at which the probe told births apart; all of them for a probe that sees each
        birth."""
        return marks

    def key(self, tensor: Any) -> Hashable | None:
        """What identifies the tensor's storage, or None if it has none."""
        return None

    def allocated(self) -> int | None:
        """Bytes allocated now; cheap. Here as below None where nothing is known."""
        return None

    def peak(self, since: Since = "mark") -> int | None:
        """The highest `allocated` since the last mark, or the last `begin_peak` of this purpose."""
        return None

    def begin_peak(self, since: Since) -> int | None:
        """Begin anew for this purpose alone; what is allocated now."""
        return None

    def watch(self, closely: bool) -> None:
        """Whether what is born from here on will be attributed: only then need births be recorded with their lines."""

    def skip_to(self, mark: int) -> None:
        """Number the next mark `mark`, which is no less than it would be."""

    def free(self) -> int | None:
        """Bytes that could still be allocated, or None where this probe does not know."""
        return None

    def capacity(self) -> int | None:
        """Bytes that there are in all, or None where this probe does not know."""
        return None

    def follow_peaks(self) -> None:
        """From now on keep what the highest moments are made of; before `start`."""

    def peaks(self) -> dict[Stretch, tuple[int, dict[int, int]]]:
        """The highest moment of each stretch so far: the bytes then, and of them those born at each site. `crests.begin` says
        when another stretch begins."""
        return {}

    def notes(self) -> list[str]:
        """What the reader of the figures has to know."""
        return []

    def stop(self) -> None:
        """Take every hook out again."""
