"""All that is said of a snapshot, gathered: the records that the reports are written from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpulint.snapshot.fragmentation import Fragmentation, fragmentation_of
from gpulint.snapshot.growth import Alive, Growth, alive_in
from gpulint.snapshot.lines import Lines
from gpulint.snapshot.recording import SETTINGS, Recording
from gpulint.snapshot.usage import Usage, usage_of
from gpulint.snapshot.whatif import WhatIf, what_if


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
    alive: dict[int, Alive]


@dataclass(frozen=True, slots=True)
class Difference:
    """What grew from one snapshot to the next."""

    before: str
    after: str
    devices: tuple[Growth, ...]


def summary_of(
    recording: Recording, path: str, asked: Asked, told: Callable[[str], None] | None = None
) -> Summary:
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
        {device: one for device, one in alive_in(recording, lines).items() if device in devices},
    )


def _device(
    recording: Recording, device: int, lines: Lines, asked: Asked, told: Callable[[str], None] | None
) -> DeviceSummary:
    usage = usage_of(recording, device, lines)
    fragmentation = fragmentation_of(recording, device, lines)
    if asked.settings is None:
        return DeviceSummary(usage, fragmentation)
    try:
        tried = what_if(recording, device, asked.settings, asked.capacity, told)
    except ValueError as error:
        return DeviceSummary(usage, fragmentation, untried=str(error))
    return DeviceSummary(usage, fragmentation, tried)
