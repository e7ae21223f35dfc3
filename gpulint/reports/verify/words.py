"""What a verification's report says of figures, in words: the peak, how memory moved in steps and windows, what waits for the collector."""

from __future__ import annotations

import os
import re

from gpulint.runtime.parent.growth import CALLS, Movement, phases
from gpulint.runtime.parent.standing import Tied
from gpulint.runtime.record import result
from gpulint.runtime.record.besides import WorkerContext
from gpulint.runtime.record.peaks import STRETCHES
from gpulint.units import format_bytes

SAID: dict[result.Figure, str] = {"rss": "host (RSS)", "heap": "host heap"}
HOST = (
    "Host memory is not counted as drift. RSS is all that the process has resident: live tensors on the host, the heap, and "
    "what malloc keeps of what was freed. The heap is what is in use beside tensors: autograd nodes, Python's objects."
)


def notes(run: result.RunResult) -> list[str]:
    """What the reader of the figures has to know, each once."""
    moved = [one for rank in run.ranks for phase in phases(rank) for one in phase.figures]
    grows = any(one.figure in SAID and one.status == "growing" for one in moved)
    return [*dict.fromkeys(note for rank in run.ranks for note in rank.notes), *([HOST] if grows else [])]


def peak_text(run: result.RunResult) -> tuple[str, str] | None:
    """The peak of a run, and of what it is and when: `18.09 MiB`, `live tensor storages, in the evaluation`."""
    if run.highest is None or not run.highest[1].allocated:
        return None
    number, peak = run.highest
    on_gpu = any(rank.environment.device == "cuda" for rank in run.ranks)
    what = "allocated" if on_gpu else "live tensor storages"
    who = f" of rank {number}" if len(run.ranks) > 1 else ""
    alone = len({one.stretch for rank in run.ranks for one in rank.peaks}) == 1
    when = "" if alone else f", in {STRETCHES[peak.stretch]}"
    return format_bytes(peak.allocated), what + when + who


def told_windows(rank: result.RankResult) -> tuple[result.WindowFigures, ...]:
    """Of each kind of window those that were seen most often, the largest first: all that something grows from one to the next of,
    and besides them rounds of loops, evaluations and what the user has named."""
    growing = {leak.window for leak in rank.leaks()}
    by_count = sorted(rank.windows, key=lambda w: (w.judged, w.seen), reverse=True)
    found = {window.name: window for window in reversed(by_count)}.values()
    wanted = (w for w in found if w.name in growing or not w.name.startswith(CALLS))
    return tuple(sorted(wanted, key=lambda w: (len(w.seconds), w.name)))


def seen_text(window: result.WindowFigures) -> tuple[str, str]:
    """`3 seen`, or that growth cannot be told; and how memory stood at their ends where there were several."""
    said = f"{len(window.seconds)} seen"
    if window.is_open:
        kind = window.name.partition(" of ")[0]
        what = f"of growth from one {kind} to the next nothing is said below three"
        said = f"{len(window.seconds) or 'no end of one'} seen when the time for it was up: {what} (--reach)"
    if len(window.levels) < 2:
        return said, ""
    first, last = window.levels[0], window.levels[-1]
    each = format_bytes(round((last - first) / (len(window.levels) - 1)), signed=True)
    return said, f"{format_bytes(first)} → {format_bytes(last)} at their ends, {each} each"


def movement_text(moved: Movement) -> str:
    """`1.20 GiB → 1.29 GiB, +4.61 MiB a step`."""
    ends = f"{format_bytes(moved.first)} → {format_bytes(moved.last)}"
    if moved.low == moved.high:
        return f"{ends}, flat"
    if moved.status in ("growing", "shrinking", "fragmentation"):
        loop = " within a loop" if moved.within else ""
        cached = moved.figure == "reserved" and moved.status == "growing"
        aside = " (cached by the allocator: not counted as drift)" if cached else ""
        return f"{ends}, {format_bytes(moved.slope, signed=True)} a step{loop}{aside}"
    if moved.status == "unknown":
        return f"{ends}, too few steps for a trend"
    if (moved.first, moved.last) == (moved.low, moved.high):
        return f"{ends}, not steadily"
    return f"{ends}, up and down between {format_bytes(moved.low)} and {format_bytes(moved.high)}"


def tied_text(one: Tied) -> str:
    """`514.00 KiB a step wait in reference cycles until the collector runs; …`."""
    what = one.what
    size = f"{format_bytes(round(one.per_step))} a step"
    ring = (*what.chain, re.sub(r"^`(\w+)\..*`$", r"`\1`", what.chain[0])) if what.chain else ()
    chain = f", tied by {' → '.join(ring)}" if ring else ""
    times = "never" if not one.came else "once" if one.came == 1 else f"{one.came} times"
    freed = f", and freed {format_bytes(one.freed)}" if one.freed else ""
    return f"{size} wait for Python's collector{chain}; in {one.steps} sampled steps it came {times}{freed}"


def context_text(one: WorkerContext) -> str:
    """`a DataLoader worker has a CUDA context since data.py:12 in Images.__getitem__: …`."""
    where = f" since {os.path.basename(one.file)}:{one.line} in {one.function}" if one.file else ""
    return (
        f"a DataLoader worker (process {one.pid}) has a CUDA context{where}: each such worker takes some hundred MiB of the "
        "card, which no allocator counts; make CPU tensors there, and move batches in the training process"
    )
