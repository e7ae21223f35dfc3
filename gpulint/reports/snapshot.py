"""Snapshots as a document: the peak by line, what stays, fragmentation, settings tried, and what grew from each to the next."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from gpulint.reports import plural, shown
from gpulint.reports.document import (
    Block,
    Cell,
    Chart,
    Document,
    Plot,
    Say,
    Section,
    Table,
    Tip,
    Value,
    curve,
    sentence,
)
from gpulint.snapshot.lines import Line
from gpulint.snapshot.recording import Frame
from gpulint.snapshot.summary import DeviceSummary, Difference, Growth, Summary
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
        if line.kind == "older":
            return [OLDER]
        if line.kind == "unknown":
            return [UNKNOWN]
        if line.kind == "node":
            return [f"{line.frames[0].name}, a backward without Python in its stack"]
        frames = [self.frame(frame) for frame in line.frames]
        if line.kind == "backward":
            frames[0] = f"backward of {frames[0]}"
        elif line.kind == "library":
            frames[0] = f"{frames[0]} (no line of the program's own in its stack)"
        return frames


def _lines(usage: Usage) -> Iterable[Line]:
    return (one.line for some in (usage.at_peak, usage.at_end, usage.ooms) for one in some)


def has_trace(usage: Usage) -> bool:
    """Whether there is more than the state at the end: with enabled="state" torch keeps the last event."""
    return usage.events > 1


def covered(usage: Usage) -> str:
    """What the trace covers."""
    if not has_trace(usage):
        return (
            'no trace: only what was there when the snapshot was taken (record with enabled="all" for more)'
        )
    began = (
        ""
        if not usage.start_allocated
        else f", which begins with {format_bytes(usage.start_allocated)} allocated"
    )
    return f"{usage.events:,} events over {usage.seconds:.1f} s{began}"


def doubts(usage: Usage) -> list[str]:
    """What is not known, or not certain, in what is said of a device."""
    said = []
    if usage.older and has_trace(usage):
        said.append(
            f"{format_bytes(usage.older)} of the peak are older than the trace; only those still there at its end have a stack, and"
            " a peak before it is not seen"
        )
    if usage.unsplit:
        said.append(
            f"the blocks that are left are {format_bytes(usage.unsplit)} larger than what they were asked for, rounded: torch's"
            " memory_allocated counts that too, and over the trace it is not known"
        )
    if usage.astray:
        said.append(
            f"trace and segments do not agree about {format_bytes(usage.astray)}: the recording ended before the snapshot was taken"
        )
    return said


def fragmentation(device: DeviceSummary) -> list[str]:
    """Where the bytes are that are reserved and not allocated."""
    found = device.fragmentation
    free = found.reserved - found.allocated
    if not free:
        return ["all that is reserved is allocated"]
    said = [
        f"{format_bytes(free)} are reserved and not allocated, the largest free block {format_bytes(found.largest_free)}"
    ]
    if found.whole:
        said.append(
            f"{format_bytes(found.whole)} in segments without any block: empty_cache() gives these back"
        )
    if found.split:
        said.append(f"{format_bytes(found.split)} in pieces between blocks that live")
    if found.pending:
        said.append(f"{format_bytes(found.pending)} are freed and wait for another stream (record_stream)")
    return said


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


def outcome(one: Outcome, tried: WhatIf) -> tuple[str, str, str, str]:
    """Setting, whether it fits, reserved at most with the model's error, and against what was recorded."""
    name = (one.setting or "default") + (" (recorded)" if one.setting == tried.recorded else "")
    if not one.fits:
        return name, "out of memory", f"no room for {format_bytes(one.failed or 0)}", ""
    against = (one.peak_reserved - tried.recorded_reserved) / max(1, tried.recorded_reserved)
    wide = f" ± {unsure(one, tried) / max(1, one.peak_reserved):.1%}"
    fits = "fits" if tried.capacity is not None else ""
    retried = f", {plural(one.retries, 'retry')}".replace("retrys", "retries") if one.retries else ""
    return name, fits + retried, format_bytes(one.peak_reserved) + wide, f"{against:+.1%}"


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


def document(summaries: Sequence[Summary], differences: Sequence[Difference], most: int) -> Document:
    """The whole report; at most `most` rows of a table on a terminal."""
    paths = Paths(summaries)
    names = ", ".join(shown(one.path) for one in summaries)
    style, headline = _conclusion(summaries, differences, paths)
    sections = [_difference(one, paths, most) for one in differences]
    for summary in summaries:
        for one in summary.devices:
            of = f", device {one.usage.device}" if len(summary.devices) > 1 else ""
            of += f" of {shown(summary.path)}" if len(summaries) > 1 else ""
            sections += _device(one, paths, most, of)
    below = [Say(f"Paths are below {paths.folder}.", "soft")] if paths.folder else []
    host = [
        Say(f"{shown(one.path)}: {format_bytes(one.host)} of pinned host memory.")
        for one in summaries
        if one.host
    ]
    settings = "; ".join(dict.fromkeys(one.settings or "default" for one in summaries))
    return Document(
        f"gpulint snapshot: {names}",
        names,
        f"allocator settings: {settings}",
        style,
        headline,
        (*sections, Section("", (*host, *below))),
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
    peak = (
        f"Peak {format_bytes(usage.peak_allocated)} allocated, {format_bytes(usage.peak_reserved)} reserved"
    )
    if usage.at_peak and has_trace(usage):
        most = usage.at_peak[0]
        first = paths.line(most.line)[0]
        peak += f"; {most.bytes / max(1, usage.peak_allocated):.0%} of it: {first}"
    if usage.ooms:
        return "bad", f"Out of memory, {plural(len(usage.ooms), 'time')}. {peak}"
    return "info", peak


def _device(device: DeviceSummary, paths: Paths, most: int, of: str) -> Iterator[Section]:
    """`of` says in each title which it is, where there are several."""
    usage, traced = device.usage, has_trace(device.usage)
    ooms = [
        (oom.asked, oom.allocated, oom.reserved, oom.free, _stack(oom.line, paths))
        for oom in usage.ooms[:_MOST_OOMS]
    ]
    wanted = device.what_if and room(device.what_if)
    tried: tuple[Block, ...] = (Say(sentence(device.untried), "warn"),) if device.untried else ()
    sections: list[tuple[str, tuple[Block, ...]]] = [
        ("Memory", (Say(sentence(covered(usage)), "soft"), _figures(device))),
        ("Allocated and reserved over the trace", tuple(_chart(usage)) if traced else ()),
        ("What makes the peak", (_shares(usage.at_peak, paths, most, traced),) if traced else ()),
        (
            f"What if{f': {wanted}' if wanted else ''}",
            tuple(_what_if(device.what_if)) if device.what_if is not None else tried,
        ),
        ("What stays at the end", (_shares(usage.at_end, paths, most, traced),)),
        ("Reserved and not allocated, at the end", tuple(_fragmentation(device, paths, most))),
        (
            f"Out of memory, {plural(len(usage.ooms), 'time')}",
            (
                Table(
                    ("Asked for", "Allocated", "Reserved", "Left on the card", "Line"), ooms, 5, "other time"
                ),
            ),
        ),
        ("Doubts", tuple(Say(sentence(said)) for said in doubts(usage))),
    ]
    yield from (Section(title + of, blocks) for title, blocks in sections)
    yield Section(f"Streams and memory pools{of}", (_parts(device),))
    yield Section(f"Segments with the most free bytes{of}", (_held(device, paths),), folded=True)


def _figures(device: DeviceSummary) -> Table:
    usage = device.usage
    rows: list[tuple[Value, ...]] = [("at the end", usage.end_allocated, usage.end_reserved)]
    if has_trace(usage):
        rows.insert(0, ("peak", usage.peak_allocated, usage.peak_reserved))
    return Table(("", "Allocated", "Reserved"), rows)


def _chart(usage: Usage) -> Iterator[Chart]:
    """Allocated and reserved, at most, with times under the axis, or the numbers of events where the trace has none, and marks where
    requests failed."""
    points = usage.timeline
    if len(points) < 2:
        return
    last, timed = len(points) - 1, points[-1].after > 0
    allocated, reserved = [one.allocated for one in points], [one.reserved for one in points]
    yield Chart(
        f"Memory of device {usage.device} over {usage.events} events: allocated at most {format_bytes(usage.peak_allocated)},"
        f" reserved at most {format_bytes(usage.peak_reserved)}",
        (
            curve("allocated", "allocated, at most", allocated, filled=True),
            curve("reserved", "reserved, at most", reserved),
        ),
        tuple(
            (n / last, f"{one.after:.2f} s" if timed else f"{one.event:,}") for n, one in enumerate(points)
        ),
        marks=tuple(
            (oom.event / max(1, usage.events), f"out of memory: {format_bytes(oom.asked)} asked for")
            for oom in usage.ooms[:_MOST_OOMS]
        ),
        tips=tuple(
            Tip(
                n / last,
                one.allocated,
                (
                    f"after {one.after:.2f} s, event {one.event:,}",
                    f"allocated: {format_bytes(one.allocated)}",
                    f"reserved: {format_bytes(one.reserved)}",
                ),
            )
            for n, one in enumerate(points)
        ),
        plots=(Plot(allocated, reserved),),
    )


def _stack(line: Line, paths: Paths) -> Cell:
    first, *others = paths.line(line)
    return Cell(first, "soft" if line.kind in ("older", "unknown", "library") else "mono", tuple(others))


def _shares(shares: Sequence[Share], paths: Paths, most: int, traced: bool) -> Table:
    rows = [
        (
            share.bytes,
            f"{share.blocks:,}",
            share.older if traced and share.older and share.line.kind != "older" else "",
            _stack(share.line, paths),
        )
        for share in shares
    ]
    whole = max(1, sum(share.bytes for share in shares))
    return Table(("Bytes", "Blocks", "Older than the trace", "Line"), rows, most, "other line", whole)


def _fragmentation(device: DeviceSummary, paths: Paths, most: int) -> Iterator[Block]:
    yield from (Say(sentence(said)) for said in fragmentation(device))
    pins = [
        (pin.free, f"{pin.segments:,}", pin.bytes, _stack(pin.line, paths))
        for pin in device.fragmentation.pins
    ]
    yield Table(("Free", "In segments", "Kept by", "Line"), pins, most, "other line")


def _held(device: DeviceSummary, paths: Paths) -> Table:
    rows = [
        (one.free, one.size, str(one.blocks), one.largest_free, _together(one.lines, paths))
        for one in device.fragmentation.held
    ]
    return Table(("Free", "Size", "Blocks", "Largest free", "Lines"), rows)


def _parts(device: DeviceSummary) -> Table:
    """What each stream and private pool has, where there are several."""
    rows = [
        (
            str(one.stream),
            "" if one.pool == (0, 0) else f"{one.pool[0]}.{one.pool[1]}",
            one.allocated,
            one.reserved,
            str(one.segments),
        )
        for one in device.fragmentation.parts
    ]
    return Table(
        ("Stream", "Private pool", "Allocated", "Reserved", "Segments"), rows if len(rows) > 1 else ()
    )


def _together(lines: Iterable[Line], paths: Paths) -> Cell:
    first, *others = (said for line in lines for said in paths.line(line))
    return Cell(first, "mono", tuple(others))


def _what_if(tried: WhatIf) -> Iterator[Block]:
    yield Say(sentence(recommendation(tried)))
    rows = [
        (Cell(name, "mono"), reserved, against, fits)
        for name, fits, reserved, against in (outcome(one, tried) for one in tried.outcomes)
    ]
    yield Table(("Settings", "Reserved at most", "Against the recorded", "Fits"), rows)
    yield Say(sentence(error(tried)), "soft")
    yield from (Say(sentence(said), "warn", "doubt") for said in tried.doubts)


def _difference(difference: Difference, paths: Paths, most: int) -> Section:
    title = f"From {shown(difference.before)} to {shown(difference.after)}"
    return Section(title, tuple(block for one in difference.devices for block in _growth(one, paths, most)))


def _growth(growth: Growth, paths: Paths, most: int) -> Iterator[Block]:
    """What moved most first."""
    moved = format_bytes(growth.allocated_after - growth.allocated_before, signed=True)
    held = format_bytes(growth.reserved_after - growth.reserved_before, signed=True)
    yield Say(f"Device {growth.device}: allocated {moved}, reserved {held}.")
    rows = [
        (
            format_bytes(one.grown, signed=True),
            one.before,
            one.after,
            f"{one.blocks_after - one.blocks_before:+,}",
            f"{one.blocks_after:,}",
            _stack(one.line, paths),
        )
        for one in sorted(growth.changes, key=lambda one: -abs(one.grown))
    ]
    yield Table(("Change", "Before", "After", "Blocks", "Now", "Line"), rows, 2 * most, "other line")
    if not rows:
        yield Say("The same lines have the same alive.", "good")
    if growth.strangers:
        yield Say(sentence(STRANGERS), "warn", "doubt")
