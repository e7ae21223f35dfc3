"""Snapshots as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from gpulint.reports import plural, shown
from gpulint.reports.layout import Line, paint, quoted
from gpulint.reports.snapshot import words
from gpulint.reports.verify.plot import memory_plot
from gpulint.snapshot.growth import Growth
from gpulint.snapshot.lines import Line as SourceLine
from gpulint.snapshot.summary import DeviceSummary, Difference, Summary
from gpulint.snapshot.usage import Share
from gpulint.snapshot.whatif import WhatIf
from gpulint.units import format_bytes


def write(
    summaries: Sequence[Summary], differences: Sequence[Difference], out: TextIO, colour: bool, most: int
) -> None:
    """Each snapshot, and what grew from each to the next; at most `most` lines of a table."""
    paths = words.paths_of(summaries)
    lines: list[Line] = []
    for summary in summaries:
        lines += _snapshot(summary, paths, most)
    for difference in differences:
        lines += _difference(difference, paths, most)
    if paths.folder:
        lines.append([(f"Paths are below {paths.folder}.", "faint")])
    paint(lines, out, colour)


def _snapshot(summary: Summary, paths: words.Paths, most: int) -> Iterable[Line]:
    yield [(shown(summary.path), "path"), (f"  allocator settings: {summary.settings or 'default'}", "faint")]
    if not summary.devices:
        yield [("  nothing was ever reserved on a GPU", "")]
    for device in summary.devices:
        yield from _device(device, paths, most)
    if summary.host:
        yield [(f"  pinned host memory: {format_bytes(summary.host)}", "")]
    yield []


def _device(device: DeviceSummary, paths: words.Paths, most: int) -> Iterable[Line]:
    usage = device.usage
    yield [(f"  device {usage.device}", "strong"), (f"  {words.covered(usage)}", "faint")]
    figures = [("at the end", usage.end_allocated, usage.end_reserved)]
    if words.has_trace(usage):
        figures.insert(0, ("peak", usage.peak_allocated, usage.peak_reserved))
    for name, allocated, reserved in figures:
        yield [
            (f"    {name:<11}", ""),
            (f"allocated {format_bytes(allocated):>11}", "strong"),
            (f"   reserved {format_bytes(reserved):>11}", ""),
        ]
    if words.has_trace(usage):
        points = usage.timeline
        yield from memory_plot([one.allocated for one in points], [one.reserved for one in points], 76)
        yield from _shares("What makes the peak", usage.at_peak, usage.peak_allocated, paths, most)
    yield from _shares("What stays at the end", usage.at_end, usage.end_allocated, paths, most)
    yield from _fragmentation(device, paths, most)
    yield from _ooms(device, paths)
    if device.what_if is not None:
        yield from _what_if(device.what_if)
    if device.untried:
        yield from _titled("What if", [[(f"    {device.untried}", "warning")]])
    for said in words.doubts(usage):
        yield [("    doubt: ", "warning"), (said, "")]


def _titled(title: str, lines: Iterable[Line]) -> Iterable[Line]:
    found = list(lines)
    if found:
        yield [(f"  {title}", "label")]
        yield from found


def _stack(head: Line, line: SourceLine, paths: words.Paths) -> Iterable[Line]:
    """A row, with the other frames of its stack under the first."""
    first, *others = paths.line(line)
    yield [*head, (first, "faint" if line.kind in ("older", "unknown", "library") else "path")]
    margin = sum(len(text) for text, _ in head)
    for one in others:
        yield [(" " * margin + one, "faint")]


def _shares(title: str, shares: Sequence[Share], total: int, paths: words.Paths, most: int) -> Iterable[Line]:
    rows: list[Line] = []
    for share in shares[:most]:
        old = " (older)" if share.older and share.line.kind != "older" and share.older < share.bytes else ""
        head: Line = [
            (f"    {format_bytes(share.bytes):>11}", "strong"),
            (f" {share.bytes / max(1, total):>4.0%}  {plural(share.blocks, 'block'):>10}{old}  ", ""),
        ]
        rows += _stack(head, share.line, paths)
    rest = shares[most:]
    if rest:
        left = format_bytes(sum(share.bytes for share in rest))
        rows.append(
            [(f"    {left:>11}       in {plural(len(rest), 'other line')} (--top shows more)", "faint")]
        )
    yield from _titled(title, rows)


def _fragmentation(device: DeviceSummary, paths: words.Paths, most: int) -> Iterable[Line]:
    found = device.fragmentation
    rows: list[Line] = [[(f"    {said}", "")] for said in words.fragmentation(device)]
    for pin in found.pins[:most]:
        held = f"{format_bytes(pin.free):>11} free in {plural(pin.segments, 'segment')} that {format_bytes(pin.bytes)} keep: "
        rows += _stack([(f"    {held}", "")], pin.line, paths)
    if len(found.parts) > 1:
        for part in found.parts[:most]:
            pool = "" if part.pool == (0, 0) else f", private pool {part.pool[0]}.{part.pool[1]}"
            said = (
                f"stream {part.stream}{pool}: {format_bytes(part.allocated)} of {format_bytes(part.reserved)}"
            )
            rows.append([(f"    {said} in {plural(part.segments, 'segment')}", "faint")])
    yield from _titled("Reserved and not allocated, at the end", rows)


def _ooms(device: DeviceSummary, paths: words.Paths) -> Iterable[Line]:
    rows: list[Line] = []
    for oom in device.usage.ooms[:5]:
        said = (
            f"{format_bytes(oom.asked)} asked for; {format_bytes(oom.allocated)} allocated, {format_bytes(oom.reserved)} reserved,"
            f" the driver had {format_bytes(oom.free)}: "
        )
        rows += _stack([(f"    {said}", "")], oom.line, paths)
    yield from _titled(f"Out of memory, {plural(len(device.usage.ooms), 'time')}", rows)


def _what_if(tried: WhatIf) -> Iterable[Line]:
    rows: list[Line] = [[(f"    {words.error(tried)}", "faint")]]
    table = [words.outcome(one, tried) for one in tried.outcomes]
    wide = [max(len(row[column]) for row in table) for column in range(4)]
    for number, (name, fits, reserved, against) in enumerate(table):
        style = "good" if number == 0 and tried.outcomes[0].fits else ""
        rows.append(
            [
                (f"    {name:<{wide[0]}}  ", style),
                (f"{reserved:>{wide[2]}}  {against:>{wide[3]}}  {fits}".rstrip(), ""),
            ]
        )
    rows.append([("    ", ""), *quoted(words.recommendation(tried), "strong")])
    rows += [[("    doubt: ", "warning"), (said, "")] for said in tried.doubts]
    room = words.room(tried)
    yield from _titled(f"What if: reserved at most{', ' + room if room else ''}", rows)


def _difference(difference: Difference, paths: words.Paths, most: int) -> Iterable[Line]:
    yield [
        ("from ", ""),
        (shown(difference.before), "path"),
        (" to ", ""),
        (shown(difference.after), "path"),
    ]
    for growth in difference.devices:
        yield from _growth(growth, paths, most)
    yield []


def _growth(growth: Growth, paths: words.Paths, most: int) -> Iterable[Line]:
    moved = growth.allocated_after - growth.allocated_before
    held = growth.reserved_after - growth.reserved_before
    yield [
        (f"  device {growth.device}", "strong"),
        (f"  allocated {format_bytes(moved, signed=True)}, reserved {format_bytes(held, signed=True)}", ""),
    ]
    changes = [*growth.changes[:most]]
    changes += [change for change in growth.changes[most:][-most:] if change.grown < 0]
    for change in changes:
        style = "error" if change.grown > 0 else "good"
        blocks = change.blocks_after - change.blocks_before
        head: Line = [
            (f"    {format_bytes(change.grown, signed=True):>12}", style),
            (f"  {blocks:+,} blocks (now {change.blocks_after:,})  ", ""),
        ]
        yield from _stack(head, change.line, paths)
    if growth.strangers:
        yield [("    doubt: ", "warning"), (words.STRANGERS, "")]
    if not growth.changes:
        yield [("    the same lines have the same alive", "good")]
