"""All that is said of a snapshot, gathered: the records that the reports are written from, and where the bytes are that are reserved and not
allocated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gpulint.snapshot.recording import BEFORE, SETTINGS, UNKNOWN, Block, Line, Lines, Recording, Segment
from gpulint.snapshot.usage import Usage, usage_of
from gpulint.snapshot.whatif import Told, WhatIf, what_if

PINNED: Final = 0.5  # the part of a segment that has to be free for its blocks to count as pinning it
LEAST: Final = 1 << 20  # bytes
MOST_HELD: Final = 20  # segments that are told


@dataclass(frozen=True, slots=True)
class Pin:
    """Blocks of one line that keep segments from being given back, though most of these is free; bytes."""

    line: Line
    bytes: int  # of the line's blocks there
    blocks: int
    segments: int
    free: int  # in those segments


@dataclass(frozen=True, slots=True)
class Held:
    """A segment that is partly free: bytes, and who holds it."""

    address: int
    size: int
    free: int
    blocks: int
    largest_free: int
    expandable: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What belongs to one stream and one memory pool; bytes. `pool` is (0, 0) for the common one."""

    stream: int
    pool: tuple[int, int]
    reserved: int
    allocated: int
    segments: int


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """The free bytes of one device at the end of the recording."""

    device: int
    reserved: int
    allocated: int
    pending: int  # freed, and waiting for another stream
    whole: int  # in segments without any block: empty_cache() gives these back
    split: int  # between blocks, or beside one
    rounding: int  # in blocks beyond what was asked for; part of `allocated`
    largest_free: int
    segments: int
    pins: tuple[Pin, ...]
    held: tuple[Held, ...]
    parts: tuple[Part, ...]


def fragmentation_of(recording: Recording, device: int, lines: Lines) -> Fragmentation:
    """The device's free bytes, and the segments with the most of them."""
    segments = [segment for segment in recording.segments if segment.device == device]
    blocks = [block for segment in segments for block in segment.blocks]
    used = [block for block in blocks if block.allocated]
    partly = [one for one in segments if _live(one) and _free(one)]
    held = sorted((_held(one, lines) for one in partly), key=lambda one: -one.free)
    return Fragmentation(
        device=device,
        reserved=sum(segment.size for segment in segments),
        allocated=sum(block.size for block in used),
        pending=sum(block.size for block in blocks if block.pending),
        whole=sum(segment.size for segment in segments if not _live(segment)),
        split=sum(_free(segment) for segment in partly),
        rounding=sum(block.size - block.requested for block in used),
        largest_free=max((block.size for block in blocks if block.free), default=0),
        segments=len(segments),
        pins=_pins(partly, lines),
        held=tuple(held[:MOST_HELD]),
        parts=_parts(segments),
    )


def _live(segment: Segment) -> list[Block]:
    return [block for block in segment.blocks if not block.free]


def _free(segment: Segment) -> int:
    return sum(block.size for block in segment.blocks if block.free)


def _held(segment: Segment, lines: Lines) -> Held:
    live = sorted(_live(segment), key=lambda block: -block.size)
    return Held(
        segment.address,
        segment.size,
        _free(segment),
        len(live),
        max(block.size for block in segment.blocks if block.free),
        segment.expandable,
        tuple(dict.fromkeys(lines[block.stack] for block in live))[:3],
    )


def _pins(segments: Iterable[Segment], lines: Lines) -> tuple[Pin, ...]:
    """By line, the segments that are mostly free and that its blocks hold. A segment that blocks of several lines hold counts for
    each of them: all of these would have to go."""
    sums: defaultdict[Line, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for segment in segments:
        free = _free(segment)
        if segment.expandable or free < max(LEAST, PINNED * segment.size):
            continue
        for block in _live(segment):
            pin = sums[lines[block.stack]]
            pin[0] += block.size
            pin[1] += 1
        for line in {lines[block.stack] for block in _live(segment)}:
            sums[line][2] += 1
            sums[line][3] += free
    return tuple(sorted((Pin(line, *pin) for line, pin in sums.items()), key=lambda pin: -pin.free))


def _parts(segments: Sequence[Segment]) -> tuple[Part, ...]:
    sums: defaultdict[tuple[int, tuple[int, int]], list[int]] = defaultdict(lambda: [0, 0, 0])
    for segment in segments:
        part = sums[segment.stream, segment.pool]
        part[0] += segment.size
        part[1] += sum(block.size for block in segment.blocks if block.allocated)
        part[2] += 1
    found = [Part(stream, pool, *part) for (stream, pool), part in sums.items()]
    return tuple(sorted(found, key=lambda part: -part.reserved))


@dataclass(frozen=True, slots=True)
class Asked:
    """What to say: `depth` lines of each stack (0: all of it), one device only, and which settings to try (None: none)."""

    depth: int = 1
    device: int | None = None
    settings: tuple[str, ...] | None = None
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """One device of a snapshot. `untried` says why nothing was tried though it was asked for."""

    usage: Usage
    fragmentation: Fragmentation
    what_if: WhatIf | None = None
    untried: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """One snapshot. `host` are bytes of pinned host memory that it lists besides."""

    path: str
    settings: str
    devices: tuple[DeviceSummary, ...]
    host: int


@dataclass(frozen=True, slots=True)
class Change:
    """What one line has alive before and after: bytes and blocks."""

    line: Line
    before: int
    after: int
    blocks_before: int
    blocks_after: int

    @property
    def grown(self) -> int:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Growth:
    """One device in two snapshots; bytes. `changes` begins with what grew most and ends with what shrank most. `strangers` where
    no line of the program has anything alive in both, though each has lines."""

    device: int
    allocated_before: int
    allocated_after: int
    reserved_before: int
    reserved_after: int
    changes: tuple[Change, ...]
    strangers: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """What grew from one snapshot to the next."""

    before: str
    after: str
    devices: tuple[Growth, ...]


def summary_of(recording: Recording, path: str, asked: Asked, told: Told = lambda _: None) -> Summary:
    """Look at every device, or the one that is asked for. Raises ValueError where the snapshot has nothing of it."""
    lines = Lines(recording, asked.depth)
    devices: Sequence[int] = recording.devices()
    if asked.device is not None:
        if asked.device not in devices:
            there = ", ".join(map(str, devices)) or "none"
            raise ValueError(f"{path} has nothing of device {asked.device}; it has {there}")
        devices = [asked.device]
    return Summary(
        path,
        str(recording.settings.get(SETTINGS) or ""),
        tuple(_device(recording, device, lines, asked, told) for device in devices),
        recording.host,
    )


def _device(recording: Recording, device: int, lines: Lines, asked: Asked, told: Told) -> DeviceSummary:
    usage = usage_of(recording, device, lines)
    fragmentation = fragmentation_of(recording, device, lines)
    tried, untried = None, ""
    if asked.settings is not None:
        try:
            tried = what_if(recording, device, asked.settings, asked.capacity, told)
        except ValueError as error:
            untried = str(error)
    return DeviceSummary(usage, fragmentation, tried, untried)


def difference_between(one: Summary, other: Summary) -> Difference:
    """Every device of either snapshot."""
    before, after = ({each.usage.device: each.usage for each in two.devices} for two in (one, other))
    growth = (_growth(device, before.get(device), after.get(device)) for device in sorted(before | after))
    return Difference(one.path, other.path, tuple(growth))


def _growth(device: int, one: Usage | None, other: Usage | None) -> Growth:
    was, now = _alive(one), _alive(other)
    changes = [
        Change(line, was[line][0], now[line][0], was[line][1], now[line][1])
        for line in {**was, **now}
        if was[line] != now[line]
    ]
    changes.sort(key=lambda change: (-change.grown, str(change.line)))
    lines = [{line for line, sums in alive.items() if not line.kind and any(sums)} for alive in (was, now)]
    return Growth(
        device,
        one.end_allocated if one else 0,
        other.end_allocated if other else 0,
        one.end_reserved if one else 0,
        other.end_reserved if other else 0,
        tuple(changes),
        strangers=all(lines) and lines[0].isdisjoint(lines[1]),
    )


def _alive(usage: Usage | None) -> defaultdict[Line, tuple[int, int]]:
    """By line, bytes and blocks at the end. Which of them are older than a trace is nothing to compare."""
    found: defaultdict[Line, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for share in usage.at_end if usage else ():
        line = UNKNOWN if share.line == BEFORE else share.line
        found[line] = (found[line][0] + share.bytes, found[line][1] + share.blocks)
    return found
