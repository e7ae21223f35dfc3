"""What the recorded allocations would have needed under other settings, or on another card.

The trace is played through the model of the allocator: first as it was recorded, which shows how far the model is from what the
GPU did on this very trace; then under each of the settings that are asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpulint.allocator import Allocator, OutOfMemory, Settings, parse_settings
from gpulint.allocator.driver import Addresses, AnyOrder
from gpulint.snapshot.beginning import Keys, Range, lay_out, ranges_at_start
from gpulint.snapshot.lines import Lines
from gpulint.snapshot.recording import Action, Recording, Trace, settings_of
from gpulint.snapshot.usage import Usage, blocks_at_start, usage_of

_GIVING = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
_TAKING = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP, Action.OOM)


def emptying(recording: Recording) -> set[int]:
    """The stacks that go through `torch.cuda.empty_cache`."""
    return {
        stack.number
        for stack in recording.stacks
        if any(frame.name in ("empty_cache", "emptyCache") for frame in stack.frames)
    }


def emptied(trace: Trace, by_name: set[int]) -> Iterable[int]:
    """The events at which the program emptied the cache: segments are given back, and no request for which there was no room asks for
    one right after it. A stack that names `empty_cache` settles it."""
    for first, behind in _runs(trace):
        if behind is None or trace.action[behind] not in _TAKING or trace.stack[first] in by_name:
            yield first


def room_of(recording: Recording, usage: Usage) -> int | None:
    """What the process could reserve, in bytes, as far as the trace shows: a request failed, or segments had to be given back for
    it. None where neither happened."""
    trace = recording.trace_of(usage.device)
    segment_size = Allocator(settings_of(recording)[0]).segment_size
    found = [min(oom.reserved + oom.free, oom.reserved + segment_size(oom.asked) - 1) for oom in usage.ooms]
    by_name = emptying(recording)
    reserved = _reserved_before(trace, usage.start_reserved)
    for first, behind in _runs(trace):
        if behind is not None and trace.action[behind] in _TAKING and trace.stack[first] not in by_name:
            found.append(reserved[first] + segment_size(trace.size[behind]) - 1)
    return max(min(found), usage.peak_reserved) if found else None


def _runs(trace: Trace) -> Iterable[tuple[int, int | None]]:
    """Each run of segments given back: its first event, and the event behind it."""
    first = None
    for index, action in enumerate(trace.action):
        if action in _GIVING:
            first = index if first is None else first
        elif first is not None:
            yield first, index
            first = None
    if first is not None:
        yield first, None


def _reserved_before(trace: Trace, start: int) -> dict[int, int]:
    """What was reserved before each event that gives a segment back."""
    found, reserved = {}, start
    for index, action in enumerate(trace.action):
        if action in _GIVING:
            found[index] = reserved
            reserved -= trace.size[index]
        elif action in (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP):
            reserved += trace.size[index]
    return found


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
    told: Callable[[str], None] = lambda _: None,
) -> WhatIf:
    """Play the trace of a device under each of the settings. `told` hears which one comes. Raises ValueError for settings that
    are not of torch's form, and where there is no trace."""
    parsed = {text: parse_settings(text) for text in dict.fromkeys(settings)}
    trace = recording.trace_of(device)
    if Action.ALLOC not in trace.action:
        raise ValueError(
            f"device {device} has no trace of allocations: record with torch.cuda.memory._record_memory_history(max_entries=…)"
        )
    usage = usage_of(recording, device, Lines(recording))
    player = _Player(recording, device)
    room = room_of(recording, usage)
    inferred = capacity is None and room is not None
    capacity = room if capacity is None else capacity
    told("the recorded settings")
    control = player.play(settings_of(recording)[1], player.recorded, room)
    outcomes = []
    for text, one in parsed.items():
        told(text or "the default")
        outcomes.append(player.several_ways(text, one, capacity))
    return WhatIf(
        device=device,
        recorded=settings_of(recording)[1],
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
        self.recorded = settings_of(recording)[0]
        self.trace = recording.trace_of(device)
        self.keys = Keys(recording)
        self.ranges = ranges_at_start(recording, device, self.keys)
        self.blocks = blocks_at_start(recording, device)
        self._emptied = set(emptied(self.trace, emptying(recording)))
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
        self, text: str, settings: Settings, capacity: int | None, addresses: Addresses | None = None
    ) -> Outcome:
        """What the model says. Without a capacity nothing fails."""
        model = Allocator(settings, capacity, addresses=addresses)
        failed = None
        try:
            self._run(model, self._begin(model))
        except OutOfMemory as error:
            failed = error.requested
        except (KeyError, AssertionError) as error:
            raise ValueError(
                "the trace cannot be played: its segments and blocks contradict one another"
            ) from error
        return Outcome(text, model.peak_allocated, model.peak_reserved, model.reserved, model.retries, failed)

    def _begin(self, model: Allocator) -> dict[int, int]:
        """Put what is older than the trace in: as it lay where the kind of segments is the same, otherwise one behind another.
        Where each recorded address is in the model."""
        if model.settings.expandable == self.recorded.expandable:
            return {address: address for address in lay_out(model, self.ranges, self.blocks)}
        return {
            address: model.malloc(size, _stream_of(self.ranges, address))
            for address, size in sorted(self.blocks.items())
        }

    def _run(self, model: Allocator, where: dict[int, int]) -> None:
        malloc, free, streams, freed = model.malloc, model.free, self.keys.of_place, self._freed
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


def _stream_of(ranges: Sequence[Range], address: int) -> int:
    """The stream of an old block, by the range it lies in."""
    return next((one.stream for one in ranges if one.address <= address < one.end), 0)


def _doubts(
    recording: Recording, usage: Usage, player: _Player, settings: dict[str, Settings]
) -> Iterable[str]:
    from gpulint.memory.alloc_conf import parse
    from gpulint.units import format_bytes

    unknown = sorted(
        {key for text in (*settings, settings_of(recording)[1]) for key in parse(text)} - MODELLED
    )
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
