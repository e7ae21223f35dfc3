"""What a peak is made of: changes of live memory in the order in which they came, gone through up to the highest point.

Only the highest point of each stretch of a run is kept. A probe says when another stretch begins; between two readings it adds
what was allocated and freed, and `fold` makes use of that.
"""

from __future__ import annotations

import bisect
import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpulint.runtime.record.drift import rounded
from gpulint.runtime.record.peaks import Stretch

MOST_CHANGES = 1_000_000  # that wait for the next reading
TRACED = 200_000  # events that the allocator keeps until they are read


_Changes = Sequence[tuple[int, int]]  # of keys, in bytes
_Events = Sequence[Mapping[str, Any]]  # as the allocator records them
Live = dict[int, tuple[int, int]]  # address -> (bytes, site)


class Crest(NamedTuple):
    """The bytes alive at one moment, in all and by what they were added under."""

    allocated: int
    parts: dict[int, int]


def highest(base: Mapping[int, int], changes: _Changes, least: int = -1) -> Crest | None:
    """The first moment at which most was alive, of those with more than `least`; the one before any change counts too.

    `base` is what was alive before, by key; a change adds bytes to a key, or takes them away."""
    totals = list(itertools.accumulate((size for _, size in changes), initial=sum(base.values())))
    best = max(totals)
    return Crest(best, applied(base, changes[: totals.index(best)])) if best > least else None


def applied(base: Mapping[int, int], changes: Iterable[tuple[int, int]]) -> dict[int, int]:
    """What is alive after the changes, without the keys of which nothing is left."""
    parts = dict(base)
    for key, size in changes:
        parts[key] = parts.get(key, 0) + size
    return {key: size for key, size in parts.items() if size}


def by_site(blocks: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The bytes of blocks, each a size and a site, by site."""
    totals: dict[int, int] = {}
    for size, site in blocks:
        totals[site] = totals.get(site, 0) + size
    return totals


def changes_of(
    events: Iterable[Mapping[str, Any]], alive: Live, born_at: Callable[[Mapping[str, Any]], int]
) -> Iterator[tuple[Mapping[str, Any], tuple[int, int]]]:
    """What the allocator's events change, by site; `alive` goes along. What was freed and not seen to be allocated was no part of
    the figure that is gone through."""
    for event in events:
        if event["action"] == "alloc":
            size, site = rounded(event["size"]), born_at(event)
            alive[event["addr"]] = (size, site)
            yield event, (site, size)
        elif event["action"] == "free_requested" and event["addr"] in alive:
            size, site = alive.pop(event["addr"])
            yield event, (site, -size)


class Crests:
    """The highest moments of a run by stretch. `counts` says whether what is added under a key belongs to the figure."""

    def __init__(self, counts: Callable[[int], bool] = lambda key: True) -> None:
        self.best: dict[Stretch, Crest] = {}
        self._counts = counts
        self._stretch: Stretch = "start"
        self.base: dict[int, int] = {}  # what was alive before, by key
        self._changes: list[tuple[int, int]] = []

    def backward(self, site: int) -> None:
        """A backward is called at a site; 0: it is over. Here every change has its own site."""

    def begin(self, stretch: Stretch) -> None:
        """What was added since the last `split` or `fold` belongs to this stretch already, and so does what comes."""
        self._stretch = stretch

    def split(self) -> None:
        """From here on another stretch may be said to have begun."""
        self.fold()

    def add(self, key: int, size: int) -> None:
        """Bytes have come, or gone where `size` is negative."""
        self._changes.append((key, size))
        if len(self._changes) >= MOST_CHANGES:
            self.fold()

    def fold(self) -> None:
        """Make use of what was added: keep the highest moment of the stretch, where none as high is known."""
        changes = [one for one in self._changes if self._counts(one[0])]
        base = {key: size for key, size in self.base.items() if self._counts(key)}
        known = self.best.get(self._stretch)
        crest = highest(base, changes, known.allocated if known is not None else -1)
        if crest is not None:
            self.best[self._stretch] = crest
        self.base = applied(self.base, self._changes)
        self._changes.clear()


class CudaCrests:
    """The same from what the allocator records, one device at a time. `site_of` turns a recorded stack into a key.

    The allocator stamps each event with the time, and that is how events are told apart by stretch."""

    def __init__(self, site_of: Callable[[Any], int]) -> None:
        self._site_of = site_of
        self._devices: defaultdict[int, Crests] = defaultdict(Crests)
        self._live: dict[int, Live] = {}  # by device: what was alive when the record began
        self._begun: list[tuple[float, Stretch]] = [(0.0, "start")]  # in microseconds
        self._marked = 0.0
        self._since = 0.0  # what is older was gone through
        # When a backward began, and at which site; 0 when it ended
        self._backwards: list[tuple[float, int]] = []

    def split(self) -> None:
        """From here on another stretch may be said to have begun."""
        self._marked = time.time_ns() / 1000

    def begin(self, stretch: Stretch) -> None:
        """From the last `split` on it is this stretch."""
        if self._begun[-1][1] != stretch:
            self._begun.append((self._marked, stretch))

    def backward(self, site: int) -> None:
        """A backward is called at a site; 0: it is over. What comes without a line between is autograd's doing, in a thread of its
        own, and counts as that line's."""
        self._backwards.append((time.time_ns() / 1000, site))

    @property
    def best(self) -> dict[Stretch, Crest]:
        """The highest moment of each stretch; where there are several devices, each at its own."""
        found: dict[Stretch, Crest] = {}
        for stretch, crest in (one for crests in self._devices.values() for one in crests.best.items()):
            known = found.get(stretch, Crest(0, {}))
            parts = applied(known.parts, crest.parts.items())
            found[stretch] = Crest(known.allocated + crest.allocated, parts)
        return found

    def fold(self, traces: Sequence[_Events], live: Mapping[int, Live], cleared: bool) -> None:
        """Make use of what was recorded since the last time, a list of events for each device; `live` is what is alive now. Where
        the record is not `cleared` after that, its events come again."""
        for device, events in enumerate(traces):
            if events:
                self._go_through(device, events)
        self._live = {device: self._with_sites(device, blocks) for device, blocks in live.items()}
        self._backwards = self._backwards[-1:]
        self._begun = self._begun[-1:]
        self._since = 0.0 if cleared else time.time_ns() / 1000

    @property
    def live(self) -> Live:
        """What was alive at the last `fold`, on all devices, with the sites that are known by now."""
        return {address: block for blocks in self._live.values() for address, block in blocks.items()}

    def _with_sites(self, device: int, blocks: Live) -> Live:
        """The blocks; of those without a line, with the site that they were seen to be allocated at."""
        known = self._live.get(device, {})
        return {at: (size, site or known.get(at, (0, 0))[1]) for at, (size, site) in blocks.items()}

    def _go_through(self, device: int, events: _Events) -> None:
        alive, crests = self._live.setdefault(device, {}), self._devices[device]
        crests.base, now = by_site(alive.values()), self._begun[0][1]
        crests.begin(now)
        for stretch, change in self._changes(events, alive):
            if stretch != now:
                now = stretch
                crests.split()
                crests.begin(now)
            crests.add(*change)
        crests.fold()

    def _changes(self, events: _Events, alive: Live) -> Iterator[tuple[Stretch, tuple[int, int]]]:
        """What the events change, by site, each with its stretch."""

        def born_at(event: Mapping[str, Any]) -> int:
            return self._site_of(event.get("frames") or ()) or self._backward_at(event["time_us"])

        fresh = (event for event in events if event["time_us"] >= self._since)
        for event, change in changes_of(fresh, alive, born_at):
            yield self._stretch_at(event["time_us"]), change

    def _backward_at(self, moment: float) -> int:
        """The site of the backward that was under way."""
        position = bisect.bisect_right(self._backwards, (moment, sys.maxsize)) - 1
        return self._backwards[position][1] if position >= 0 else 0

    def _stretch_at(self, moment: float) -> Stretch:
        stretches = (stretch for begun, stretch in reversed(self._begun) if begun <= moment)
        return next(stretches, self._begun[0][1])
