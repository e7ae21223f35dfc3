"""Plays a recording through the model of torch's allocator: peaks, what makes them, and where memory would run out."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Final

from gpulint.allocator import Allocator, OutOfMemory
from gpulint.forecasting.recording import Mark, Phase, Recording

_POINTS: Final = 600  # of a curve
_OF_PHASE: Final = {
    Phase.FORWARD: "activations",
    Phase.WITHOUT_GRAD: "temporaries",
    Phase.BACKWARD: "temporaries",
    Phase.OPTIMIZER: "temporaries",
    Phase.KERNEL: "temporaries",
    Phase.LIBRARY: "workspaces",
    Phase.INPUT: "inputs",
    Phase.UNKNOWN: "temporaries",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Some of what is allocated at the peak: bytes of one kind from one line (file "" where none is known) and one module of the
    network ("" outside of all)."""

    kind: str
    file: str
    line: int
    function: str
    module: str
    operator: str
    nbytes: int
    count: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A place on the way: the number of steps that had ended of each kind, and the line."""

    train: int
    eval: int
    kind: str  # of the step that was under way
    file: str
    line: int
    phase: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of the training as they came, or of whatever else is done where nothing is trained: bytes at most within each and
    left at its end."""

    peaks: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def growth(self) -> int:
        """Bytes that each of the last steps has left behind more than the one before; 0 where not all have."""
        steps = [after - before for before, after in itertools.pairwise(self.ends[2:])]
        return min(steps) if len(steps) >= 2 and min(steps) > 0 else 0

    @property
    def spread(self) -> float:
        """By how much of the highest peak the peaks after the second step differ."""
        later = self.peaks[2:]
        most = max(later, default=0)
        return 1 - min(later) / most if most else 0.0


@dataclass(frozen=True, slots=True)
class Replay:
    """The figures of a recording under one allocator setting, in bytes."""

    allocated: int
    reserved: int
    steps: Steps
    parts: tuple[Part, ...]
    peak_at: Moment
    curve: tuple[tuple[int, int, int], ...]  # event, allocated, reserved; thinned, every high kept
    out_of_memory: Moment | None


def replay(
    recording: Recording, settings: str = "", limit: int | None = None, kernels: float = 1.0
) -> Replay:
    """Play it. `limit` is what the allocator may reserve; without one there is no end. What kernels take for themselves counts
    `kernels` times. Raises ValueError for settings that make no sense."""
    allocator = Allocator(settings, limit)
    addresses: dict[int, int] = {}
    best, best_event = -1, 0
    curve: list[tuple[int, int, int]] = []
    stopped: int | None = None
    every = max(1, len(recording.events) // _POINTS)
    high = (0, 0)
    ends, peak = _ends(recording), 0
    steps: list[tuple[int, int]] = []
    for index, event in enumerate(recording.events):
        if index in ends:
            steps.append((peak, allocator.allocated))
            peak = allocator.allocated
        try:
            if not isinstance(event, int):
                size = event[1] if event[4] != Phase.KERNEL else max(1, int(event[1] * kernels))
                addresses[event[0]] = allocator.malloc(size)
                if allocator.allocated > best:
                    best, best_event = allocator.allocated, index
            elif event:
                allocator.free(addresses.pop(event))
            else:
                allocator.empty_cache()
        except OutOfMemory:
            stopped = index
            break
        high = max(high[0], allocator.allocated), max(high[1], allocator.reserved)
        if index % every == every - 1 or index == len(recording.events) - 1:
            curve.append((index, *high))
            high = (0, 0)
        peak = max(peak, allocator.allocated)
    if len(recording.events) in ends:
        steps.append((peak, allocator.allocated))
    return Replay(
        allocator.peak_allocated,
        allocator.peak_reserved,
        Steps(tuple(peak for peak, _ in steps), tuple(left for _, left in steps)),
        tuple(_parts(recording, best_event)),
        moment(recording, best_event),
        tuple(curve),
        None if stopped is None else moment(recording, stopped),
    )


def _ends(recording: Recording) -> set[int]:
    """The numbers of events before which steps have ended."""
    kinds = {mark.kind for mark in recording.marks}
    kind = next((one for one in ("explicit", "train", "eval") if one in kinds), "train")
    return {mark.events for mark in recording.marks if mark.kind == kind}


def _parts(recording: Recording, until: int) -> list[Part]:
    """What is there after an event, by kind and line, the largest first."""
    live: dict[int, tuple[int, int, int, int, int]] = {}
    for event in recording.events[: until + 1]:
        if not isinstance(event, int):
            live[event[0]] = event
        elif event:
            del live[event]
    known = {number: kind for kind, numbers in recording.kinds.items() for number in numbers}
    owners = {number: name for name, numbers in recording.modules.items() for number in numbers}
    sizes: Counter[tuple[str, int, int, str]] = Counter()
    counts: Counter[tuple[str, int, int, str]] = Counter()
    for number, nbytes, site, operator, phase in live.values():
        # Whose libraries serve all of them
        running = "" if phase == Phase.LIBRARY else _site(recording, site)[3]
        module = owners.get(number, running)
        key = (known.get(number) or _OF_PHASE[Phase(phase)], site, operator, module)
        sizes[key] += -(-nbytes // 512) * 512
        counts[key] += 1
    return [
        Part(key[0], *_site(recording, key[1])[:3], key[3], recording.operators[key[2]], size, counts[key])
        for key, size in sizes.most_common()
    ]


def _site(recording: Recording, index: int) -> tuple[str, int, str, str]:
    return recording.sites[index] if index < len(recording.sites) else ("", 0, "", "")


def moment(recording: Recording, index: int) -> Moment:
    """Where in the program an event lies."""
    ended: Counter[str] = Counter()
    following: Mark | None = None
    for mark in recording.marks:
        if mark.events > index:
            following = mark
            break
        ended[mark.kind] += 1
    event = recording.events[index] if recording.events else (0, 0, 0, 0, Phase.UNKNOWN)
    file, line, *_ = _site(recording, event[2]) if not isinstance(event, int) else ("", 0)
    phase = Phase(event[4]).name.lower() if not isinstance(event, int) else ""
    kind = following.kind if following is not None else "after"
    return Moment(ended["train"] + ended["explicit"], ended["eval"], kind, file, line, phase)
