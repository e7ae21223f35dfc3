"""What a trace tells besides allocations and frees: where the program emptied the cache, and how much room there was."""

from __future__ import annotations

from collections.abc import Iterable

from gpulint.allocator import Allocator
from gpulint.snapshot.recording import Action, Recording, Trace
from gpulint.snapshot.settings import settings_of
from gpulint.snapshot.usage import Usage

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
