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
    """One device in two snapshots; bytes. `changes` begins with what grew most and ends with what shrank most."""

    device: int
    allocated_before: int
    allocated_after: int
    reserved_before: int
    reserved_after: int
    changes: tuple[Change, ...]


def growth_between(before: Recording, after: Recording, depth: int = 1) -> tuple[Growth, ...]:
    """Every device of either snapshot."""
    devices = sorted({*before.devices(), *after.devices()})
    return tuple(_growth(before, after, device, depth) for device in devices)


def _growth(before: Recording, after: Recording, device: int, depth: int) -> Growth:
    one, other = _alive(before, device, depth), _alive(after, device, depth)
    changes = []
    for line in {**one, **other}:
        (was, number), (now, numbers) = one.get(line, (0, 0)), other.get(line, (0, 0))
        if was != now or number != numbers:
            changes.append(Change(line, was, now, number, numbers))
    changes.sort(key=lambda change: (-change.grown, str(change.line)))
    return Growth(
        device,
        sum(bytes_ for bytes_, _ in one.values()),
        sum(bytes_ for bytes_, _ in other.values()),
        _reserved(before, device),
        _reserved(after, device),
        tuple(changes),
    )


def _alive(recording: Recording, device: int, depth: int) -> dict[Line, tuple[int, int]]:
    lines = Lines(recording, depth)
    found: dict[Line, tuple[int, int]] = {}
    for segment in recording.segments:
        for block in segment.blocks if segment.device == device else ():
            if block.allocated:
                size, number = found.get(lines[block.stack], (0, 0))
                found[lines[block.stack]] = (size + block.size, number + 1)
    return found


def _reserved(recording: Recording, device: int) -> int:
    return sum(segment.size for segment in recording.segments if segment.device == device)
