"""Programs that fragment memory, as lists of allocations and frees: for the allocator model and for a GPU alike."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gpulint.allocator import MIB, Event
from gpulint.units import format_bytes

SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:2048",
    "expandable_segments:True,max_split_size_mb:128",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:8",
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`limit` is the memory that the process may have, in bytes (None: what the card has)."""

    name: str
    what: str
    events: tuple[Event, ...]
    limit: int | None = None


def holes(size: int = 256 * MIB, count: int = 24, every: int = 3, ask: float = 0.85) -> Scenario:
    """Fill the memory with tensors, free every `every`-th, ask for `ask` of what was freed in one piece."""
    if size < 1 or count < every or every < 2 or not 0 < ask <= 1:
        raise ValueError(
            "holes need a size, at least as many tensors as `every`, every >= 2, and 0 < ask <= 1"
        )
    events = [Event("alloc", number, size) for number in range(count)]
    freed = range(0, count, every)
    events += [Event("free", number) for number in freed]
    wanted = int(len(freed) * size * ask)
    events.append(Event("alloc", count, wanted))
    return Scenario(
        f"holes of {format_bytes(size)}",
        f"{count} tensors of {format_bytes(size)} fill the memory, every {_ordinal(every)} is freed, then one of"
        f" {format_bytes(wanted)} ({ask:.0%} of what was freed) is asked for",
        tuple(events),
        _filled(size, count),
    )


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def _filled(size: int, count: int) -> int:
    """What these tensors make the default allocator reserve, and one tensor more: the allocator compares the
    limit with the request, also where expandable segments need fewer new pages than that."""
    from gpulint.allocator import Allocator

    model = Allocator()
    for _ in range(count):
        model.malloc(size)
    return model.reserved + size + 24 * MIB


def lengths(steps: int = 60, longest: int = 512, batch: int = 16, seed: int = 0) -> Scenario:
    """The activations of a small transformer language model on batches of varying length."""
    chance = random.Random(seed)
    events: list[Event] = []
    name = 0
    for _ in range(steps):
        tokens = batch * chance.randint(longest // 16, longest)
        hidden, wide, logits = tokens * 512 * 4, tokens * 2048 * 4, tokens * 32000 * 4
        kept = (
            [hidden]
            + [part for _ in range(4) for part in (3 * hidden, hidden, hidden, wide, wide, hidden)]
            + [logits]
        )
        live = []
        for size in kept:
            events.append(Event("alloc", name, size))
            live.append(name)
            name += 1
        for size in (logits, logits):  # log_softmax, and its gradient
            events.append(Event("alloc", name, size))
            live.append(name)
            name += 1
        for size in reversed(kept):  # backward: the gradient of each activation, then both go
            events.append(Event("alloc", name, size))
            events.append(Event("free", live.pop()))
            live.insert(0, name)
            if len(live) > len(kept) + 2:
                events.append(Event("free", live.pop(0)))
            name += 1
        events += [Event("free", left) for left in live]
    return Scenario(
        "varying lengths",
        f"{steps} training steps on batches of {longest // 16} to {longest} tokens; nothing is kept between steps",
        tuple(events),
    )


def standard(
    size: int = 256 * MIB, count: int = 24, every: int = 3, ask: float = 0.85
) -> tuple[Scenario, ...]:
    """The programs of `gpulint experiment fragmentation`: large holes, holes that are not whole pages of 20 MiB,
    holes inside segments, and varying lengths."""
    smaller = [part for part in (size // 4, size // 64) if part >= 1]
    return (
        holes(size, count, every, ask),
        *(holes(part, max(every, count * size // part), every, ask) for part in smaller),
        lengths(),
    )
