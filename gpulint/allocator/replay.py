"""Programs as lists of allocations and frees, played through the allocator's model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gpulint.allocator.model import Allocator, Snapshot
from gpulint.allocator.settings import Settings


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a trace: `alloc` or `free` of the allocation that the program calls `name`, or `empty` for
    `empty_cache`."""

    action: Literal["alloc", "free", "empty"]
    name: int = 0
    size: int = 0
    stream: int = 0


def replay(
    events: Iterable[Event],
    settings: Settings | str = "",
    capacity: int | None = None,
    limit: int | None = None,
) -> Snapshot:
    """The figures after a trace. Raises OutOfMemory where the program would have."""
    allocator = Allocator(settings, capacity, limit)
    addresses: dict[int, int] = {}
    for event in events:
        if event.action == "alloc":
            addresses[event.name] = allocator.malloc(event.size, event.stream)
        elif event.action == "free":
            allocator.free(addresses.pop(event.name))
        else:
            allocator.empty_cache()
    return allocator.snapshot()


def events_of(trace: Iterable[Mapping[str, object]]) -> list[Event]:
    """The events of one device in `torch.cuda.memory._snapshot()["device_traces"]`, ready for `replay`.

    Frees of blocks that are older than the trace are left out.
    """
    found: list[Event] = []
    names: dict[object, int] = {}
    for number, entry in enumerate(trace):
        if entry["action"] == "alloc":
            names[entry["addr"]] = number
            size, stream = entry["size"], entry["stream"]
            assert isinstance(size, int)
            assert isinstance(stream, int)
            found.append(Event("alloc", number, size, stream))
        elif entry["action"] == "free_completed" and entry["addr"] in names:
            found.append(Event("free", names.pop(entry["addr"])))
    return found
