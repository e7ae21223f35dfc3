"""What is alive in a later snapshot that was not in an earlier one, by line."""

from __future__ import annotations

from dataclasses import dataclass

from gpulint.snapshot.lines import Line, Lines
from gpulint.snapshot.recording import Recording


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
class Alive:
    """What one device has at the end of a recording: bytes, and by line bytes and blocks."""

    allocated: int
    reserved: int
    lines: dict[Line, tuple[int, int]]


_NOTHING = Alive(0, 0, {})


def alive_in(recording: Recording, lines: Lines) -> dict[int, Alive]:
    """By device, all that is left of a recording for `growth_between`."""
    return {device: _alive(recording, device, lines) for device in recording.devices()}


def growth_between(before: dict[int, Alive], after: dict[int, Alive]) -> tuple[Growth, ...]:
    """Every device of either snapshot."""
    return tuple(
        _growth(device, before.get(device, _NOTHING), after.get(device, _NOTHING))
        for device in sorted({*before, *after})
    )


def _growth(device: int, one: Alive, other: Alive) -> Growth:
    changes = []
    for line in {**one.lines, **other.lines}:
        (was, number), (now, numbers) = one.lines.get(line, (0, 0)), other.lines.get(line, (0, 0))
        if was != now or number != numbers:
            changes.append(Change(line, was, now, number, numbers))
    changes.sort(key=lambda change: (-change.grown, str(change.line)))
    lines = [{line for line in alive.lines if not line.kind} for alive in (one, other)]
    return Growth(
        device,
        one.allocated,
        other.allocated,
        one.reserved,
        other.reserved,
        tuple(changes),
        strangers=all(lines) and lines[0].isdisjoint(lines[1]),
    )


def _alive(recording: Recording, device: int, lines: Lines) -> Alive:
    segments = [segment for segment in recording.segments if segment.device == device]
    found: dict[Line, tuple[int, int]] = {}
    for segment in segments:
        for block in segment.blocks:
            if block.allocated:
                size, number = found.get(lines[block.stack], (0, 0))
                found[lines[block.stack]] = (size + block.size, number + 1)
    return Alive(sum(size for size, _ in found.values()), sum(segment.size for segment in segments), found)
