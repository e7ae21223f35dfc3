"""What the recorded allocations would have needed under other settings, or on another card.

The trace is played through the model of the allocator: first as it was recorded, which shows how far the model is from what the
GPU did on this very trace; then under each of the settings that are asked about. The state of the allocator when a trace begins is
worked out backwards from the state at its end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter
from typing import Final

from gpulint.allocator import Allocator, OutOfMemory, Piece, Settings, parse_settings
from gpulint.allocator.driver import AnyOrder, Driver
from gpulint.allocator.settings import SMALL_SEGMENT, UNLIMITED
from gpulint.memory.alloc_conf import parse
from gpulint.snapshot.recording import MOST_OF_A_CARD, RESERVES, Action, Lines, Recording, Trace, settings_of
from gpulint.snapshot.usage import Usage, blocks_at_start, usage_of
from gpulint.units import format_bytes

Told = Callable[[str], None]  # hears what comes next

_TAKING = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP, Action.OOM)


def _given_back(recording: Recording, trace: Trace, reserved: int) -> Iterator[tuple[int, int, int | None]]:
    """Each run of segments given back: its first event, what was reserved before it, and the request that it makes room for; None where
    the program emptied the cache: no request that takes a segment follows right after it, or the stack names `empty_cache`."""
    emptying = {
        stack.number
        for stack in recording.stacks
        if any(frame.name in ("empty_cache", "emptyCache") for frame in stack.frames)
    }
    run = None
    for index, (action, _, size, _, _) in enumerate(trace):
        sign = RESERVES.get(action, 0)
        if sign < 0:
            run = run or (index, reserved)
        elif run is not None:
            makes_room = action in _TAKING and trace.stack[run[0]] not in emptying
            yield *run, index if makes_room else None
            run = None
        reserved += sign * size
    if run is not None:
        yield *run, None


def room_of(recording: Recording, usage: Usage) -> int | None:
    """What the process could reserve, in bytes, as far as the trace shows: a request failed, or segments had to be given back for
    it. None where neither happened."""
    trace = recording.trace_of(usage.device)
    segment_size = Allocator(settings_of(recording)[0]).segment_size
    found = [min(oom.reserved + oom.free, oom.reserved + segment_size(oom.asked) - 1) for oom in usage.ooms]
    for _, before, request in _given_back(recording, trace, usage.start_reserved):
        if request is not None:
            found.append(before + segment_size(trace.size[request]) - 1)
    return max(min(found), usage.peak_reserved) if found else None


SENSIBLE: Final = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "roundup_power2_divisions:4",
    "expandable_segments:True,roundup_power2_divisions:8",
)
# Other orders of addresses that are played: so many, fewer where the trace is long.
MOST_ORDERS: Final = 6
ORDERED_EVENTS: Final = 600_000
MODELLED: Final = frozenset(
    "expandable_segments max_split_size_mb max_non_split_rounding_mb roundup_power2_divisions"
    " large_segment_size_mb backend".split()
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model says of one choice of settings; bytes. `failed` is the size of the request that finds no room.

    `unsure` is the most that `peak_reserved` changes by where new segments come to lie elsewhere; and where blocks that are older than
    the trace had to be laid out anew, what was cached beside them, if that is more.
    """

    setting: str
    peak_allocated: int
    peak_reserved: int
    end_reserved: int
    retries: int
    failed: int | None = None
    unsure: int = 0

    @property
    def fits(self) -> bool:
        return self.failed is None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcomes for one device, the best first, and how far they can be trusted.

    `as_recorded` is the model under the recorded settings, with the room that the trace shows there was; `error` its peak of reserved
    memory against the recorded one, as a part of that. `capacity` in bytes; None where nothing says what the card has.
    """

    device: int
    recorded: str
    recorded_reserved: int
    recorded_allocated: int
    as_recorded: Outcome
    error: float
    capacity: int | None
    inferred: bool  # whether the capacity is the most that the trace leaves open, and was not given
    outcomes: tuple[Outcome, ...]
    doubts: tuple[str, ...]


def what_if(
    recording: Recording,
    device: int,
    settings: Sequence[str],
    capacity: int | None = None,
    told: Told = lambda _: None,
) -> WhatIf:
    """Play the trace of a device under each of the settings. `told` hears which one comes. Raises ValueError for settings that
    are not of torch's form, and where there is no trace."""
    parsed = {text: parse_settings(text) for text in settings}
    if Action.ALLOC not in recording.trace_of(device).action:
        raise ValueError(
            f"device {device} has no trace of allocations: record with torch.cuda.memory._record_memory_history(max_entries=…)"
        )
    usage = usage_of(recording, device, Lines(recording))
    player = _Player(recording, device)
    room = room_of(recording, usage)
    inferred = capacity is None and room is not None
    capacity = room if capacity is None else capacity
    told("the recorded settings")
    control = player.play(player.text, player.recorded, room)
    outcomes = []
    for text, one in parsed.items():
        told(text or "the default")
        outcomes.append(player.several_ways(text, one, capacity))
    return WhatIf(
        device=device,
        recorded=player.text,
        recorded_reserved=usage.peak_reserved,
        recorded_allocated=usage.peak_allocated,
        as_recorded=control,
        error=(control.peak_reserved - usage.peak_reserved) / max(1, usage.peak_reserved),
        capacity=capacity,
        inferred=inferred,
        outcomes=tuple(sorted(outcomes, key=lambda one: (not one.fits, one.peak_reserved, len(one.setting)))),
        doubts=tuple(_doubts(recording, usage, player, parsed)),
    )


class _Player:
    """Plays one device's trace."""

    def __init__(self, recording: Recording, device: int) -> None:
        self.recorded, self.text = settings_of(recording)
        self.trace = recording.trace_of(device)
        keys: Keys = defaultdict(count().__next__)
        self.streams = [keys[stream, pool or (0, 0)] for stream, pool in recording.places]
        self.ranges = ranges_at_start(recording, device, keys)
        self.blocks = blocks_at_start(recording, device)
        runs = _given_back(recording, self.trace, 0)
        self._emptied = {first for first, _, request in runs if request is None}
        actions = self.trace.action
        self._freed = Action.FREE_COMPLETED if Action.FREE_COMPLETED in actions else Action.FREE_REQUESTED

    @property
    def cached_at_start(self) -> int:
        return max(0, sum(one.size for one in self.ranges) - sum(self.blocks.values()))

    def several_ways(self, text: str, settings: Settings, capacity: int | None) -> Outcome:
        """What the model says, and how much of it is for the driver and for the time before the trace to decide."""
        one = self.play(text, settings, capacity)
        if not one.fits:
            return one
        anew = settings.expandable != self.recorded.expandable
        unsure = self.cached_at_start if anew and self.blocks else 0
        if not settings.expandable:
            orders = min(MOST_ORDERS, max(1, ORDERED_EVENTS // max(1, len(self.trace))))
            for seed in range(orders):
                other = self.play(text, settings, capacity, AnyOrder(seed))
                unsure = max(unsure, abs(one.peak_reserved - other.peak_reserved))
        return replace(one, unsure=unsure)

    def play(
        self, text: str, settings: Settings, capacity: int | None, addresses: Driver | None = None
    ) -> Outcome:
        """What the model says. Without a capacity nothing fails."""
        model = Allocator(settings, capacity, addresses=addresses)
        failed = None
        try:
            self._run(model, self._begin(model))
        except OutOfMemory as error:
            failed = error.requested
        except (KeyError, AssertionError) as error:
            contradiction = "its segments and blocks contradict one another"
            raise ValueError(f"the trace cannot be played: {contradiction}") from error
        return Outcome(text, model.peak_allocated, model.peak_reserved, model.reserved, model.retries, failed)

    def _begin(self, model: Allocator) -> dict[int, int]:
        """Put what is older than the trace in: as it lay where the kind of segments is the same, otherwise one behind another.
        Where each recorded address is in the model."""
        if model.settings.expandable == self.recorded.expandable:
            return {address: address for address in lay_out(model, self.ranges, self.blocks)}
        where: dict[int, int] = {}
        for address, size in sorted(self.blocks.items()):
            around = (one.stream for one in self.ranges if one.address <= address < one.end)
            where[address] = model.malloc(size, next(around, 0))
        return where

    def _run(self, model: Allocator, where: dict[int, int]) -> None:
        malloc, free, streams, freed = model.malloc, model.free, self.streams, self._freed
        emptied_at = self._emptied
        for index, (action, address, size, place, _) in enumerate(self.trace):
            if action == Action.ALLOC:
                if address in where:  # its end was not recorded
                    free(where.pop(address))
                where[address] = malloc(size, streams[place])
            elif action == freed:
                if address in where:
                    free(where.pop(address))
            elif action == Action.OOM and model.capacity < 1 << 62:
                free(malloc(size, streams[place]))  # would it find room?
            elif index in emptied_at:
                model.empty_cache()


def _doubts(
    recording: Recording, usage: Usage, player: _Player, settings: dict[str, Settings]
) -> Iterator[str]:
    unknown = sorted({key for text in (*settings, player.text) for key in parse(text)} - MODELLED)
    if unknown:
        yield f"{', '.join(unknown)}: played as if not given, because the model, or what a trace tells, has nothing of it"
    old = sum(player.blocks.values())
    if old and any(one.expandable != player.recorded.expandable for one in settings.values()):
        yield (
            f"{format_bytes(old)} are older than the trace: under segments of the other kind they are put in one behind another, without the"
            f" {format_bytes(player.cached_at_start)} that were cached between and beside them"
        )
    private = {one.pool for one in recording.segments if one.device == usage.device} - {(0, 0)}
    if private:
        yield (
            f"{len(private)} private memory pool{'s' * (len(private) > 1)} (CUDA graphs, MemPool): kept apart in the model, but given back there by"
            " empty_cache, which a live graph's pool is not"
        )


# -- the state when the trace begins ---------------------------------------------------------------------------

_GRAIN = SMALL_SEGMENT  # every mapped range consists of whole ones
_ENDLESS = UNLIMITED >> 8  # bytes of addresses for an expandable range, as in the allocator's model
_Pool = tuple[int, bool]  # stream key, small
# A number for each pair of stream and memory pool: blocks of two such pairs never serve one another
Keys = defaultdict[tuple[int, tuple[int, int]], int]


@dataclass(frozen=True, slots=True)
class Range:
    """Reserved memory: a segment, or a range of mapped pages."""

    address: int
    size: int
    stream: int
    small: bool
    expandable: bool

    @property
    def end(self) -> int:
        return self.address + self.size


def ranges_at_start(recording: Recording, device: int, keys: Keys) -> list[Range]:
    """What was reserved when the trace began, by address."""
    ended = [
        Range(one.address, one.size, keys[one.stream, one.pool], one.small, one.expandable)
        for one in recording.segments
        if one.device == device
    ]
    fixed = {one.address: one for one in ended if not one.expandable}
    grains = {grain: one for one in ended if one.expandable for grain in _grains(one.address, one.size)}
    mapped = sorted((one for one in ended if one.expandable), key=attrgetter("address"))
    trace = recording.trace_of(device)
    for index in range(len(trace) - 1, -1, -1):
        action = trace.action[index]
        if Action.SEGMENT_ALLOC <= action <= Action.SEGMENT_UNMAP:
            address, size = trace.address[index], trace.size[index]
            number, pool = recording.places[trace.place[index]]
            stream = keys[number, pool or (0, 0)]
            if action == Action.SEGMENT_ALLOC:
                fixed.pop(address, None)
            elif action == Action.SEGMENT_FREE:
                fixed[address] = Range(address, size, stream, size <= SMALL_SEGMENT, False)
            elif action == Action.SEGMENT_MAP:
                for grain in _grains(address, size):
                    grains.pop(grain, None)
            else:
                one = Range(address, size, stream, _is_small(mapped, address, size), True)
                grains.update(dict.fromkeys(_grains(address, size), one))
    return sorted([*fixed.values(), *_joined(grains)], key=attrgetter("address"))


def _grains(address: int, size: int) -> range:
    if size > MOST_OF_A_CARD:
        raise ValueError(f"the trace maps {size} bytes at once, which no card has")
    return range(address, address + size, _GRAIN)


def _is_small(ranges: Sequence[Range], address: int, size: int) -> bool:
    """Whether an address lies in a range for small blocks: as the nearest range at the end does."""
    if not ranges:
        return size <= SMALL_SEGMENT
    place = bisect_left(ranges, address, key=attrgetter("address"))
    return min(ranges[max(0, place - 1) : place + 1], key=lambda one: abs(one.address - address)).small


def _joined(grains: dict[int, Range]) -> list[Range]:
    """The grains as ranges, those side by side and of one pool as one."""
    found: list[Range] = []
    for address in sorted(grains):
        kind = grains[address]
        begin = address
        if found and found[-1].end == address:
            if (found[-1].stream, found[-1].small) == (kind.stream, kind.small):
                begin = found.pop().address
        found.append(Range(begin, address + _GRAIN - begin, kind.stream, kind.small, True))
    return found


def lay_out(model: Allocator, ranges: Iterable[Range], blocks: dict[int, int]) -> set[int]:
    """Put ranges and the blocks in them (address -> size) into the model as they lie; the addresses of the blocks that have a
    range to lie in."""
    laid: set[int] = set()
    starts = sorted(blocks)
    expandable: dict[_Pool, list[Piece]] = {}
    for one in ranges:
        pieces = list(_pieces(one, starts, blocks))
        laid |= {piece.address for piece in pieces if piece.allocated}
        if one.expandable:
            chain = expandable.setdefault((one.stream, one.small), [])
            if chain and (end := chain[-1].address + chain[-1].size) < one.address:
                chain.append(Piece(end, one.address - end, False, mapped=False))
            chain += pieces
        else:
            model.adopt(pieces, one.stream, one.small, False)
    for (stream, small), chain in expandable.items():
        end = chain[-1].address + chain[-1].size
        chain.append(Piece(end, _ENDLESS, False, mapped=False))
        model.adopt(_merged(chain), stream, small, True)
    return laid


def _pieces(one: Range, starts: list[int], blocks: dict[int, int]) -> Iterable[Piece]:
    at = one.address
    for address in starts[bisect_left(starts, one.address) : bisect_left(starts, one.end)]:
        if address < at:
            continue
        if address > at:
            yield Piece(at, address - at, False)
        size = min(blocks[address], one.end - address)
        yield Piece(address, size, True)
        at = address + size
    if at < one.end:
        yield Piece(at, one.end - at, False)


def _merged(chain: list[Piece]) -> list[Piece]:
    """Free pieces side by side as one."""
    found: list[Piece] = []
    for piece in chain:
        last = found[-1] if found else None
        if last is not None and not last.allocated and not piece.allocated and last.mapped == piece.mapped:
            found[-1] = last._replace(size=last.size + piece.size)
        else:
            found.append(piece)
    return found
