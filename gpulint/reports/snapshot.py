"""Snapshots as a document: the peak by line, what stays, fragmentation, settings tried, and what grew from each to the next."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from gpulint.reports import document as doc
from gpulint.reports import plural, shown_path
from gpulint.snapshot import DeviceSummary, Difference, Fragmentation, Growth, Summary
from gpulint.snapshot.recording import Frame, Line
from gpulint.snapshot.usage import Share, Usage
from gpulint.snapshot.whatif import Outcome, WhatIf
from gpulint.units import format_bytes

UNKNOWN: Final = "no Python stack (a backward's own thread, or recorded without stacks)"
OLDER: Final = "older than the trace"
STRANGERS: Final = "no line of the program has anything alive in both: are these snapshots of one program?"


class Paths:
    """File names without the folder that all of the program's files have in common."""

    def __init__(self, summaries: Iterable[Summary]) -> None:
        lines = (line for summary in summaries for one in summary.devices for line in _lines(one.usage))
        files = {frame.file for line in lines if line.kind in ("", "backward") for frame in line.frames}
        folders = {os.path.dirname(file) for file in files if os.path.isabs(file)}
        try:
            self.folder = os.path.commonpath(folders) if folders else ""
        except ValueError:  # of two drives
            self.folder = ""
        if self.folder == os.sep:
            self.folder = ""

    def frame(self, frame: Frame) -> str:
        file = frame.file
        if self.folder and file.startswith(self.folder + os.sep):
            file = file[len(self.folder) + 1 :]
        elif "-packages" + os.sep in file:
            file = file.rpartition("-packages" + os.sep)[2]
        return f"{file}:{frame.line} {frame.name}"

    def line(self, line: Line) -> list[str]:
        """The frames, the innermost first; what stands in place of one."""
        if line.kind in ("older", "unknown"):
            return [OLDER if line.kind == "older" else UNKNOWN]
        if line.kind == "node":
            return [f"{line.frames[0].name}, a backward without Python in its stack"]
        first, *others = map(self.frame, line.frames)
        before = "backward of " if line.kind == "backward" else ""
        after = " (no line of the program's own in its stack)" if line.kind == "library" else ""
        return [f"{before}{first}{after}", *others]

    def cell(self, *lines: Line) -> doc.Cell:
        """The stack of a line, or of several together."""
        first, *others = (said for line in lines for said in self.line(line))
        soft = len(lines) == 1 and lines[0].kind in ("older", "unknown", "library")
        return doc.Cell(first, "soft" if soft else "mono", tuple(others))


def _lines(usage: Usage) -> Iterable[Line]:
    return (one.line for some in (usage.at_peak, usage.at_end, usage.ooms) for one in some)


def has_trace(usage: Usage) -> bool:
    """Whether there is more than the state at the end: with enabled="state" torch keeps the last event."""
    return usage.events > 1


def covered(usage: Usage) -> str:
    """What the trace covers."""
    if not has_trace(usage):
        more = 'record with enabled="all" for more'
        return f"no trace: only what was there when the snapshot was taken ({more})"
    start = usage.start_allocated
    began = f", which begins with {format_bytes(start)} allocated" if start else ""
    return f"{usage.events:,} events over {usage.seconds:.1f} s{began}"


def doubts(usage: Usage) -> Iterator[str]:
    """What is not known, or not certain, in what is said of a device."""
    if usage.older and has_trace(usage):
        yield (
            f"{format_bytes(usage.older)} of the peak are older than the trace; only those still there at its end have a stack, and"
            " a peak before it is not seen"
        )
    if usage.unsplit:
        yield (
            f"the blocks that are left are {format_bytes(usage.unsplit)} larger than what they were asked for, rounded: torch's"
            " memory_allocated counts that too, and over the trace it is not known"
        )
    if usage.astray:
        said = f"trace and segments do not agree about {format_bytes(usage.astray)}"
        yield f"{said}: the recording ended before the snapshot was taken"


def fragmentation(found: Fragmentation) -> Iterator[str]:
    """Where the bytes are that are reserved and not allocated."""
    free = found.reserved - found.allocated
    if not free:
        yield "all that is reserved is allocated"
        return
    largest = format_bytes(found.largest_free)
    yield f"{format_bytes(free)} are reserved and not allocated, the largest free block {largest}"
    for size, where in (
        (found.whole, "in segments without any block: empty_cache() gives these back"),
        (found.split, "in pieces between blocks that live"),
        (found.pending, "are freed and wait for another stream (record_stream)"),
    ):
        if size:
            yield f"{format_bytes(size)} {where}"


def recommendation(tried: WhatIf) -> str:
    """What the outcomes speak for, and how far."""
    best = tried.outcomes[0]
    under = next((one for one in tried.outcomes if one.setting == tried.recorded), tried.as_recorded)
    if not best.fits:
        return "none of these settings has room for all that the trace asks for"
    saved = under.peak_reserved - best.peak_reserved
    if best.setting == tried.recorded or (under.fits and saved == 0):
        return "the recorded settings reserve as little as any of these"
    name = f"`{best.setting}`" if best.setting else "the default"
    if not under.fits:
        return f"{name} fits, and the recorded settings do not"
    doubt = unsure(best, tried) + unsure(under, tried)
    if saved <= max(doubt, 0.01 * tried.recorded_reserved):
        return f"{name} would reserve {format_bytes(saved)} less, which is within what the model may be wrong by: no choice can be based on it"
    return f"{name} would reserve {format_bytes(saved)} less ({saved / max(1, under.peak_reserved):.0%})"


def error(tried: WhatIf) -> str:
    """How far the model is from the GPU on this trace."""
    return (
        f"under the recorded settings ({tried.recorded or 'the default'}) the model reserves {format_bytes(tried.as_recorded.peak_reserved)} at most,"
        f" the GPU did {format_bytes(tried.recorded_reserved)}: its error on this trace is {tried.error:+.1%}"
    )


def room(tried: WhatIf) -> str:
    """What there is to fit into."""
    if tried.capacity is None:
        return ""
    most = ", the most room that the trace leaves open" if tried.inferred else ""
    return f"what has to fit into {format_bytes(tried.capacity)}{most}"


def unsure(one: Outcome, tried: WhatIf) -> int:
    """What the model may be wrong by: its error on this trace, or what the driver's choice of addresses changes if that is more."""
    return max(round(abs(tried.error) * one.peak_reserved), one.unsure)


def outcome(one: Outcome, tried: WhatIf) -> tuple[doc.Value, ...]:
    """Setting, reserved at most with the model's error, against what was recorded, and whether it fits."""
    recorded = " (recorded)" if one.setting == tried.recorded else ""
    name = doc.Cell((one.setting or "default") + recorded, "mono")
    if not one.fits:
        return name, f"no room for {format_bytes(one.failed or 0)}", "", "out of memory"
    against = (one.peak_reserved - tried.recorded_reserved) / max(1, tried.recorded_reserved)
    wide = f" ± {unsure(one, tried) / max(1, one.peak_reserved):.1%}"
    fits = "fits" if tried.capacity is not None else ""
    retried = f", {one.retries} {'retry' if one.retries == 1 else 'retries'}" if one.retries else ""
    return name, format_bytes(one.peak_reserved) + wide, f"{against:+.1%}", fits + retried


_MOST_OOMS: Final = 50


def as_json(summaries: Sequence[Summary], differences: Sequence[Difference]) -> dict[str, Any]:
    """Sizes are bytes; a line is a list of frames, the innermost first, and `kind` says what it is if it is not the program's own.
    `growth` is from each snapshot to the next."""
    return {"snapshots": [_plain(one) for one in summaries], "growth": [_plain(one) for one in differences]}


def _plain(value: Any) -> Any:
    if isinstance(value, Line):
        return {"kind": value.kind, "frames": [_plain(frame) for frame in value.frames]}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.name != "original"}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def document(summaries: Sequence[Summary], differences: Sequence[Difference], most: int) -> doc.Document:
    """The whole report; at most `most` rows of a table on a terminal."""
    paths = Paths(summaries)
    names = ", ".join(shown_path(one.path) for one in summaries)
    style, headline = _conclusion(summaries, differences, paths)
    sections = [_difference(one, paths, most) for one in differences]
    last = []
    for summary in summaries:
        name = shown_path(summary.path)
        for one in summary.devices:
            of = f", device {one.usage.device}" if len(summary.devices) > 1 else ""
            sections += _device(one, paths, most, of + (f" of {name}" if len(summaries) > 1 else ""))
        if summary.host:
            last.append(doc.Say(f"{name}: {format_bytes(summary.host)} of pinned host memory."))
    if paths.folder:
        last.append(doc.Say(f"Paths are below {paths.folder}.", "soft"))
    settings = "; ".join(dict.fromkeys(one.settings or "default" for one in summaries))
    return doc.Document(
        f"gpulint snapshot: {names}",
        names,
        f"allocator settings: {settings}",
        style,
        headline,
        (*sections, doc.section("", last)),
    )


def _conclusion(
    summaries: Sequence[Summary], differences: Sequence[Difference], paths: Paths
) -> tuple[str, str]:
    """How the outcome is styled, and the outcome: growth where there are several, otherwise the peak and its largest line."""
    if differences:
        grown = sum(one.allocated_after - one.allocated_before for two in differences for one in two.devices)
        said = f"{format_bytes(abs(grown))} {'more' if grown > 0 else 'less'} allocated at the end than at the beginning"
        return "bad" if grown > 0 else "good", f"{said}; {plural(len(summaries), 'snapshot')} compared"
    devices = summaries[0].devices if summaries else ()
    if not devices:
        return "info", "Nothing was ever reserved on a GPU"
    worst = max(devices, key=lambda one: one.usage.peak_allocated)
    if worst.what_if is not None and not worst.usage.ooms:
        return "info", recommendation(worst.what_if)
    usage = worst.usage
    allocated, reserved = format_bytes(usage.peak_allocated), format_bytes(usage.peak_reserved)
    peak = f"Peak {allocated} allocated, {reserved} reserved"
    if usage.at_peak and has_trace(usage):
        most = usage.at_peak[0]
        first = paths.line(most.line)[0]
        peak += f"; {most.bytes / max(1, usage.peak_allocated):.0%} of it: {first}"
    if usage.ooms:
        return "bad", f"Out of memory, {plural(len(usage.ooms), 'time')}. {peak}"
    return "info", peak


def _device(device: DeviceSummary, paths: Paths, most: int, of: str) -> Iterator[doc.Section]:
    """`of` says in each title which it is, where there are several."""
    usage, found = device.usage, device.fragmentation
    traced = has_trace(usage)
    rows = [("peak", usage.peak_allocated, usage.peak_reserved)] if traced else []
    rows.append(("at the end", usage.end_allocated, usage.end_reserved))
    figures = doc.Table(("", "Allocated", "Reserved"), rows)
    yield doc.section(f"Memory{of}", doc.remark(covered(usage), "soft"), figures)
    if traced:
        yield doc.section(f"Allocated and reserved over the trace{of}", _chart(usage))
        yield doc.section(f"What makes the peak{of}", _shares(usage.at_peak, paths, most, traced))
    if device.what_if is not None:
        wanted = room(device.what_if)
        yield doc.section(f"What if{f': {wanted}' if wanted else ''}{of}", _what_if(device.what_if))
    elif device.untried:
        yield doc.section(f"What if{of}", doc.remark(device.untried, "warn"))
    yield doc.section(f"What stays at the end{of}", _shares(usage.at_end, paths, most, traced))
    pins = [(pin.free, f"{pin.segments:,}", pin.bytes, paths.cell(pin.line)) for pin in found.pins]
    kept = doc.Table(("Free", "In segments", "Kept by", "Line"), pins, most, "other line")
    said = map(doc.remark, fragmentation(found))
    yield doc.section(f"Reserved and not allocated, at the end{of}", said, kept)
    ooms = [
        (oom.asked, oom.allocated, oom.reserved, oom.free, paths.cell(oom.line))
        for oom in usage.ooms[:_MOST_OOMS]
    ]
    head = ("Asked for", "Allocated", "Reserved", "Left on the card", "Line")
    title = f"Out of memory, {plural(len(usage.ooms), 'time')}{of}"
    yield doc.section(title, doc.Table(head, ooms, 5, "other time"))
    yield doc.section(f"Doubts{of}", map(doc.remark, doubts(usage)))
    pools = (".".join(map(str, part.pool)) if any(part.pool) else "" for part in found.parts)
    parts = [
        (str(part.stream), pool, part.allocated, part.reserved, str(part.segments))
        for part, pool in zip(found.parts, pools, strict=True)
    ]
    head = ("Stream", "Private pool", "Allocated", "Reserved", "Segments")
    yield doc.section(f"Streams and memory pools{of}", doc.Table(head, parts if len(parts) > 1 else ()))
    head = ("Free", "Size", "Blocks", "Largest free", "Lines")
    held = [(h.free, h.size, str(h.blocks), h.largest_free, paths.cell(*h.lines)) for h in found.held]
    yield doc.section(f"Segments with the most free bytes{of}", doc.Table(head, held), folded=True)


def _chart(usage: Usage) -> Iterator[doc.Chart]:
    """Allocated and reserved, at most, with times under the axis, or the numbers of events where the trace has none, and marks where
    requests failed."""
    points = usage.timeline
    if len(points) < 2:
        return
    last, timed = len(points) - 1, points[-1].after > 0
    allocated, reserved = [one.allocated for one in points], [one.reserved for one in points]
    most = ", ".join(_amounts(usage.peak_allocated, usage.peak_reserved, " at most"))
    told = [
        (f"after {one.after:.2f} s, event {one.event:,}", *_amounts(one.allocated, one.reserved))
        for one in points
    ]
    yield doc.Chart(
        f"Memory of device {usage.device} over {usage.events} events: {most}",
        (
            doc.curve("allocated", "allocated, at most", allocated, filled=True),
            doc.curve("reserved", "reserved, at most", reserved),
        ),
        tuple((n / last, f"{p.after:.2f} s" if timed else f"{p.event:,}") for n, p in enumerate(points)),
        marks=tuple(
            (oom.event / max(1, usage.events), f"out of memory: {format_bytes(oom.asked)} asked for")
            for oom in usage.ooms[:_MOST_OOMS]
        ),
        tips=tuple(doc.Tip(n / last, allocated[n], lines) for n, lines in enumerate(told)),
        plots=(doc.Plot(allocated, reserved),),
    )


def _amounts(allocated: int, reserved: int, how: str = ":") -> tuple[str, str]:
    return f"allocated{how} {format_bytes(allocated)}", f"reserved{how} {format_bytes(reserved)}"


def _shares(shares: Sequence[Share], paths: Paths, most: int, traced: bool) -> doc.Table:
    rows = [
        (
            share.bytes,
            f"{share.blocks:,}",
            share.older if traced and share.older and share.line.kind != "older" else "",
            paths.cell(share.line),
        )
        for share in shares
    ]
    whole = max(1, sum(share.bytes for share in shares))
    return doc.Table(("Bytes", "Blocks", "Older than the trace", "Line"), rows, most, "other line", whole)


def _what_if(tried: WhatIf) -> Iterator[doc.Block]:
    yield doc.remark(recommendation(tried))
    rows = [outcome(one, tried) for one in tried.outcomes]
    yield doc.Table(("Settings", "Reserved at most", "Against the recorded", "Fits"), rows)
    yield doc.remark(error(tried), "soft")
    yield from (doc.remark(said, "warn", "doubt") for said in tried.doubts)


def _difference(difference: Difference, paths: Paths, most: int) -> doc.Section:
    title = f"From {shown_path(difference.before)} to {shown_path(difference.after)}"
    return doc.section(title, *(_growth(one, paths, most) for one in difference.devices))


def _growth(growth: Growth, paths: Paths, most: int) -> Iterator[doc.Block]:
    """What moved most first."""
    moved = format_bytes(growth.allocated_after - growth.allocated_before, signed=True)
    held = format_bytes(growth.reserved_after - growth.reserved_before, signed=True)
    yield doc.Say(f"Device {growth.device}: allocated {moved}, reserved {held}.")
    rows = [
        (
            format_bytes(one.grown, signed=True),
            one.before,
            one.after,
            f"{one.blocks_after - one.blocks_before:+,}",
            f"{one.blocks_after:,}",
            paths.cell(one.line),
        )
        for one in sorted(growth.changes, key=lambda one: -abs(one.grown))
    ]
    yield doc.Table(("Change", "Before", "After", "Blocks", "Now", "Line"), rows, 2 * most, "other line")
    if not rows:
        yield doc.Say("The same lines have the same alive.", "good")
    if growth.strangers:
        yield doc.remark(STRANGERS, "warn", "doubt")
