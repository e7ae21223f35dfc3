"""What a trace says of one device: allocated and reserved over time, the peak, and the lines that make it.

The trace gives the bytes that were asked for; each is rounded here as the allocator rounds it. The rest of a block that it did
not split off (at most 1 MiB, and only in the pool of large blocks) counts in torch's `memory_allocated` and not here;
`unsplit` says how much that is at the end, where the snapshot has the blocks themselves.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Final

from gpulint.allocator import Allocator
from gpulint.snapshot.recording import BEFORE, RESERVES, Action, Line, Lines, Recording, settings_of

POINTS: Final = 480  # of a timeline


@dataclass(frozen=True, slots=True)
class Share:
    """What one line has allocated and not freed: bytes and blocks."""

    line: Line
    bytes: int
    blocks: int
    older: int = 0  # of these bytes, those that were allocated before the trace


@dataclass(frozen=True, slots=True)
class Point:
    """Of a piece of the timeline: the most that was allocated and reserved in it, in bytes. `after` in seconds."""

    event: int
    after: float
    allocated: int
    reserved: int


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """A request that failed: bytes asked for, bytes the driver had left, and what was in use then."""

    event: int
    asked: int
    free: int
    allocated: int
    reserved: int
    line: Line


@dataclass(frozen=True, slots=True)
class Usage:
    """One device over the trace; bytes."""

    device: int
    events: int
    seconds: float
    start_allocated: int
    start_reserved: int
    peak_allocated: int
    peak_at: int  # event after which it is reached; 0 where that is before the first
    peak_reserved: int
    end_allocated: int
    end_reserved: int
    unsplit: int
    astray: int  # bytes that trace and segments do not agree about
    at_peak: tuple[Share, ...]
    at_end: tuple[Share, ...]
    timeline: tuple[Point, ...]
    ooms: tuple[OutOfMemory, ...]

    @property
    def older(self) -> int:
        """Bytes at the peak that were allocated before the trace."""
        return sum(share.older for share in self.at_peak)


# address -> (size, stack); of a block from before the trace ~stack, which is negative
_Live = dict[int, tuple[int, int]]


class _Old:
    """Blocks and segments from before the trace: those still there, and those that went during it."""

    def __init__(self, recording: Recording, device: int) -> None:
        self.trace = recording.trace_of(device)
        # The size of the block that a request gets, by the request
        self.rounded = cache(Allocator(settings_of(recording)[0]).round)
        segments = [one for one in recording.segments if one.device == device]
        blocks = [block for segment in segments for block in segment.blocks if block.allocated]
        self.ended: _Live = {block.address: (block.size, block.stack) for block in blocks}  # at the end
        self.end_reserved = sum(segment.size for segment in segments)
        gone: _Live = {}
        live: set[int] = set()
        known: set[int] = set()
        net = 0
        for action, address, size, _, _ in self.trace:
            if action == Action.ALLOC:
                live.add(address)
                known.add(address)
            elif action in (Action.FREE_REQUESTED, Action.FREE_COMPLETED):
                if address in live:
                    live.discard(address)
                elif address not in known and action == Action.FREE_REQUESTED:
                    gone[address] = (self.rounded(size), ~0)
                    known.add(address)
            else:
                net += RESERVES.get(action, 0) * size
        self.start_reserved = max(0, self.end_reserved - net)
        self.ended = {a: one if a in live else (one[0], ~one[1]) for a, one in self.ended.items()}
        self.at_start = {a: one for a, one in self.ended.items() if one[1] < 0} | gone


def blocks_at_start(recording: Recording, device: int) -> dict[int, int]:
    """The blocks that were allocated when the trace began: address -> size."""
    return {address: size for address, (size, _) in _Old(recording, device).at_start.items()}


def usage_of(recording: Recording, device: int, lines: Lines) -> Usage:
    """What happened on a device, by line."""
    old = _Old(recording, device)
    walk = _Walk(old, lines)
    walk.to_the_end()
    peak = walk.live_after(walk.peak_at)
    unsplit = sum(old.ended[a][0] - size for a, (size, _) in walk.live.items() if a in old.ended)
    astray = sum(size for address, (size, _) in walk.live.items() if address not in old.ended)
    return Usage(
        device=device,
        events=len(old.trace),
        seconds=walk.seconds,
        start_allocated=walk.start,
        start_reserved=old.start_reserved,
        peak_allocated=walk.peak,
        peak_at=walk.peak_at,
        peak_reserved=walk.peak_reserved,
        end_allocated=sum(size for size, _ in old.ended.values()),
        end_reserved=old.end_reserved,
        unsplit=unsplit,
        astray=astray,
        at_peak=_shares(peak, lines),
        at_end=_shares(old.ended, lines, older=bool(len(old.trace))),
        timeline=tuple(walk.points),
        ooms=tuple(walk.ooms),
    )


class _Walk:
    """Goes through the trace, with what is allocated at each event."""

    def __init__(self, old: _Old, lines: Lines) -> None:
        self._trace, self._rounded, self._old, self._lines = old.trace, old.rounded, old, lines
        self.live = dict(old.at_start)
        self.start = sum(size for size, _ in self.live.values())
        self.peak, self.peak_at = self.start, 0
        self.peak_reserved = old.start_reserved
        self.points: list[Point] = []
        self.ooms: list[OutOfMemory] = []
        times = old.trace.time
        self._began = times[0] if len(times) else 0
        self.seconds = (times[-1] - times[0]) / 1e6 if len(times) else 0.0

    def to_the_end(self) -> None:
        """Find the peak; note the timeline and the OOMs on the way."""
        number = len(self._trace)
        allocated, reserved = self.start, self._old.start_reserved
        self._note(0, allocated, reserved)
        events = enumerate(self._trace, 1)
        for point in range(min(POINTS, number)):
            last = (point + 1) * number // min(POINTS, number)
            most, most_reserved = 0, 0
            for index, (action, address, size, _, stack) in events:
                allocated += self._step(self.live, action, address, size, stack)
                if action >= Action.SEGMENT_ALLOC:
                    reserved += RESERVES.get(action, 0) * size
                    if action == Action.OOM:
                        line = self._lines[stack]
                        self.ooms.append(OutOfMemory(index, size, address, allocated, reserved, line))
                if allocated > most:
                    most = allocated
                    if allocated > self.peak:
                        self.peak, self.peak_at = allocated, index
                most_reserved = max(most_reserved, reserved)
                if index == last:
                    break
            self._note(last, most, most_reserved)

    def _note(self, event: int, allocated: int, reserved: int) -> None:
        self.peak_reserved = max(self.peak_reserved, reserved)
        after = (self._trace.time[event - 1] - self._began) / 1e6 if event else 0.0
        self.points.append(Point(event, after, allocated, reserved))

    def live_after(self, event: int) -> _Live:
        """What is allocated after so many events."""
        live = dict(self._old.at_start)
        for (action, address, size, _, stack), _ in zip(self._trace, range(event), strict=False):
            self._step(live, action, address, size, stack)
        return live

    def _step(self, live: _Live, action: int, address: int, size: int, stack: int) -> int:
        """Let an event happen to what is `live`; by how many bytes `allocated` changes."""
        if action > Action.FREE_COMPLETED:
            return 0
        gone, _ = live.pop(address, (0, 0))
        if action != Action.ALLOC:
            return -gone
        size = self._rounded(size)
        live[address] = (size, stack)
        return size - gone


def _shares(live: _Live, lines: Lines, older: bool = True) -> tuple[Share, ...]:
    """The blocks by line, the largest share first. Without a trace none is `older` than it."""
    sums: defaultdict[Line, list[int]] = defaultdict(lambda: [0, 0, 0])
    for size, stack in live.values():
        share = sums[BEFORE if stack == ~0 and older else lines[max(stack, ~stack)]]
        share[0] += size
        share[1] += 1
        share[2] += size if stack < 0 else 0
    shares = (Share(line, *share) for line, share in sums.items())
    return tuple(sorted(shares, key=lambda share: (-share.bytes, str(share.line))))
