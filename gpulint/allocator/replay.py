"""Programs as lists of allocations and frees, played through the allocator's model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpulint.allocator.model import Allocator, OutOfMemory, Snapshot


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a trace: `alloc` or `free` of the allocation that the program calls `name`, or `empty` for
    `empty_cache`."""

    action: Literal["alloc", "free", "empty"]
    name: int = 0
    size: int = 0


def replay(events: Iterable[Event], settings: str = "", limit: int | None = None) -> tuple[Snapshot, bool]:
    """The figures at a trace's end, or where it ran out of memory, and whether it came to its end. `limit` is in bytes."""
    allocator = Allocator(settings, limit=limit)
    addresses: dict[int, int] = {}
    for event in events:
        try:
            if event.action == "alloc":
                addresses[event.name] = allocator.malloc(event.size)
            elif event.action == "free":
                allocator.free(addresses.pop(event.name))
            else:
                allocator.empty_cache()
        except OutOfMemory:
            return allocator.snapshot(), False
    return allocator.snapshot(), True
