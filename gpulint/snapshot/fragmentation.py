"""Where the bytes are that are reserved and not allocated: in whole free segments, or in pieces between blocks that live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gpulint.snapshot.lines import Line, Lines
from gpulint.snapshot.recording import Block, Recording, Segment

PINNED: Final = 0.5  # the part of a segment that has to be free for its blocks to count as pinning it
LEAST: Final = 1 << 20  # bytes


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


def fragmentation_of(recording: Recording, device: int, lines: Lines, most: int = 20) -> Fragmentation:
    """The device's free bytes; the `most` segments with the most of them."""
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
        largest_free=max((block.size for block in blocks if _is_free(block)), default=0),
        segments=len(segments),
        pins=_pins(partly, lines),
        held=tuple(held[:most]),
        parts=_parts(segments),
    )


def _is_free(block: Block) -> bool:
    return not block.allocated and not block.pending


def _live(segment: Segment) -> list[Block]:
    return [block for block in segment.blocks if not _is_free(block)]


def _free(segment: Segment) -> int:
    return sum(block.size for block in segment.blocks if _is_free(block))


def _held(segment: Segment, lines: Lines) -> Held:
    live = sorted(_live(segment), key=lambda block: -block.size)
    return Held(
        segment.address,
        segment.size,
        _free(segment),
        len(live),
        max(block.size for block in segment.blocks if _is_free(block)),
        segment.expandable,
        tuple(dict.fromkeys(lines[block.stack] for block in live))[:3],
    )


def _pins(segments: Iterable[Segment], lines: Lines) -> tuple[Pin, ...]:
    """By line, the segments that are mostly free and that its blocks hold. A segment that blocks of several lines hold counts for
    each of them: all of these would have to go."""
    sums: dict[Line, list[int]] = {}
    for segment in segments:
        free = _free(segment)
        if segment.expandable or free < LEAST or free < PINNED * segment.size:
            continue
        seen: set[Line] = set()
        for block in _live(segment):
            line = lines[block.stack]
            pin = sums.setdefault(line, [0, 0, 0, 0])
            pin[0] += block.size
            pin[1] += 1
            if line not in seen:
                seen.add(line)
                pin[2] += 1
                pin[3] += free
    return tuple(sorted((Pin(line, *pin) for line, pin in sums.items()), key=lambda pin: -pin.free))


def _parts(segments: Sequence[Segment]) -> tuple[Part, ...]:
    sums: dict[tuple[int, tuple[int, int]], list[int]] = {}
    for segment in segments:
        part = sums.setdefault((segment.stream, segment.pool), [0, 0, 0])
        part[0] += segment.size
        part[1] += sum(block.size for block in segment.blocks if block.allocated)
        part[2] += 1
    found = [Part(stream, pool, *part) for (stream, pool), part in sums.items()]
    return tuple(sorted(found, key=lambda part: -part.reserved))
