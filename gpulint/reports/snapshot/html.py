"""Snapshots as one self-contained page, in the look of the other reports."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpulint.reports import plural, shown
from gpulint.reports.snapshot import words
from gpulint.reports.snapshot.chart import chart
from gpulint.reports.verify.page import page, table, ticked
from gpulint.snapshot.growth import Change, Growth
from gpulint.snapshot.lines import Line
from gpulint.snapshot.summary import DeviceSummary, Difference, Summary
from gpulint.snapshot.usage import Share
from gpulint.snapshot.whatif import WhatIf
from gpulint.units import format_bytes

_MORE = 5  # times as many rows as on a terminal


def write_page(summaries: Sequence[Summary], differences: Sequence[Difference], most: int) -> str:
    """The whole page; at most `most` times five rows of a table."""
    paths = words.paths_of(summaries)
    names = ", ".join(shown(one.path) for one in summaries)
    body = [_head(summaries, differences, names)]
    body += [_growth(one, paths, _MORE * most) for one in differences]
    for summary in summaries:
        for one in summary.devices:
            of = f", device {one.usage.device}" if len(summary.devices) > 1 else ""
            of += f" of {shown(summary.path)}" if len(summaries) > 1 else ""
            body.append(_device(one, paths, _MORE * most, of))
    if paths.folder:
        body.append(f'<p class="soft">Paths are below <code>{escape(paths.folder)}</code>.</p>')
    return page(f"gpulint snapshot: {names}", body)


def _head(summaries: Sequence[Summary], differences: Sequence[Difference], names: str) -> str:
    style, headline, more = _conclusion(summaries, differences)
    settings = "; ".join(dict.fromkeys(one.settings or "default" for one in summaries))
    return (
        f'<header><h1>{escape(names)}</h1><p class="soft">Memory snapshot; allocator settings: {escape(settings)}</p>'
        f'<p class="banner {style}" role="status"><strong>{ticked(headline)}</strong><br>{ticked(more)}</p></header>'
    )


def _conclusion(summaries: Sequence[Summary], differences: Sequence[Difference]) -> tuple[str, str, str]:
    """What the banner says: growth where there are several, otherwise the peak and its largest line."""
    if differences:
        grown = sum(map(words.grown, differences))
        said = f"{format_bytes(abs(grown))} {'more' if grown > 0 else 'less'} allocated at the end than at the beginning"
        return ("bad" if grown > 0 else "good"), said, f"{plural(len(summaries), 'snapshot')} compared."
    devices = summaries[0].devices if summaries else ()
    if not devices:
        return "info", "Nothing was ever reserved on a GPU", ""
    worst = max(devices, key=lambda one: one.usage.peak_allocated)
    usage = worst.usage
    shares = usage.at_peak or usage.at_end
    total = max(1, usage.peak_allocated)
    first = words.paths_of(summaries).line(shares[0].line)[0] if shares else ""
    more = f"{shares[0].bytes / total:.0%} of it: {first}." if shares else ""
    if usage.ooms:
        return (
            "bad",
            f"Out of memory, {plural(len(usage.ooms), 'time')}",
            f"Peak {format_bytes(total)} allocated. {more}",
        )
    if worst.what_if is not None:
        return "info", words.recommendation(worst.what_if), words.error(worst.what_if)
    return (
        "info",
        f"Peak {format_bytes(usage.peak_allocated)} allocated, {format_bytes(usage.peak_reserved)} reserved",
        more,
    )


def _device(device: DeviceSummary, paths: words.Paths, most: int, of: str) -> str:
    """The sections of one device; `of` says in each title which it is, where there are several."""
    usage, tried = device.usage, device.what_if
    traced = words.has_trace(usage)
    parts = [
        ("Memory", f'<p class="soft">{escape(words.covered(usage))}</p>{_figures(device)}'),
        ("Allocated and reserved over the trace", chart(usage) if traced else ""),
        ("What makes the peak", _shares(usage.at_peak, paths, most) if traced else ""),
        ("What if", _what_if(tried) if tried is not None else escape(device.untried)),
        ("What stays at the end", _shares(usage.at_end, paths, most)),
        ("Reserved and not allocated, at the end", _fragmentation(device, paths, most)),
        ("Out of memory", _ooms(device, paths)),
        ("Doubts", "".join(f"<p>{escape(said)}.</p>" for said in words.doubts(usage))),
    ]
    return "\n".join(
        f"<section><h2>{title}{escape(of)}</h2>{inner}</section>" for title, inner in parts if inner
    )


def _figures(device: DeviceSummary) -> str:
    usage, idle = device.usage, device.fragmentation.reserved - device.fragmentation.allocated
    cells = [
        ("Peak allocated", usage.peak_allocated, "over the trace"),
        ("Peak reserved", usage.peak_reserved, "over the trace"),
        ("Allocated", usage.end_allocated, "at the end"),
        ("Reserved", usage.end_reserved, "at the end"),
        ("Idle", idle, "reserved and not allocated, at the end"),
    ]
    inner = "".join(
        f"<div><dt>{name}</dt><dd>{format_bytes(value)}<small>{note}</small></dd></div>"
        for name, value, note in (cells if words.has_trace(usage) else cells[2:])
    )
    return f'<dl class="figures">{inner}</dl>'


def _stack(line: Line, paths: words.Paths) -> str:
    first, *others = paths.line(line)
    if line.kind in ("older", "unknown"):
        return f'<span class="soft">{escape(first)}</span>'
    more = "".join(f'<br><span class="soft">{escape(one)}</span>' for one in others)
    return f'<span class="mono">{escape(first)}{more}</span>'


def _shares(shares: Sequence[Share], paths: words.Paths, most: int) -> str:
    if not shares:
        return ""
    total = sum(share.bytes for share in shares)
    rows = [
        [
            format_bytes(share.bytes),
            f"{share.bytes / max(1, total):.1%}",
            f"{share.blocks:,}",
            _stack(share.line, paths),
            format_bytes(share.older) if share.older else "",
        ]
        for share in shares[:most]
    ]
    rest = shares[most:]
    if rest:
        left = sum(share.bytes for share in rest)
        rows.append([format_bytes(left), f"{left / max(1, total):.1%}", "", f"{len(rest)} others", ""])
    head = ["Bytes", "Share", "Blocks", "Line", "Older than the trace"]
    if not any(share.older for share in shares):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table(head, rows, (0, 1, 2, 4))


def _fragmentation(device: DeviceSummary, paths: words.Paths, most: int) -> str:
    found = device.fragmentation
    said = "".join(f"<p>{escape(one)}.</p>" for one in words.fragmentation(device))
    pins = [
        [format_bytes(pin.free), str(pin.segments), format_bytes(pin.bytes), _stack(pin.line, paths)]
        for pin in found.pins[:most]
    ]
    held = [
        [
            format_bytes(one.free),
            format_bytes(one.size),
            str(one.blocks),
            format_bytes(one.largest_free),
            "<br>".join(_stack(line, paths) for line in one.lines),
        ]
        for one in found.held
    ]
    parts = [
        [
            str(one.stream),
            "" if one.pool == (0, 0) else f"{one.pool[0]}.{one.pool[1]}",
            format_bytes(one.allocated),
            format_bytes(one.reserved),
            str(one.segments),
        ]
        for one in found.parts
    ]
    return "".join(
        [
            said,
            _listed("Mostly free segments, and the lines whose blocks keep them", ("Free", "Segments", "Kept by", "Line"), pins, (0, 1, 2)),
            _listed("Segments with the most free bytes", ("Free", "Size", "Blocks", "Largest free", "Lines"), held, (0, 1, 2, 3)),
            _listed("Streams and memory pools", ("Stream", "Private pool", "Allocated", "Reserved", "Segments"), parts, (2, 3, 4))
            if len(parts) > 1
            else "",
        ]
    )  # fmt: skip


def _listed(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> str:
    return f"<details><summary>{title}</summary>{table(head, rows, numbers)}</details>" if rows else ""


def _ooms(device: DeviceSummary, paths: words.Paths) -> str:
    rows = [
        [*map(format_bytes, (oom.asked, oom.allocated, oom.reserved, oom.free)), _stack(oom.line, paths)]
        for oom in device.usage.ooms[:50]
    ]
    head = ("Asked for", "Allocated", "Reserved", "Left on the card", "Line")
    return table(head, rows, (0, 1, 2, 3)) if rows else ""


def _what_if(tried: WhatIf) -> str:
    rows = [
        [f"<code>{escape(name)}</code>", reserved, against, escape(fits)]
        for name, fits, reserved, against in (words.outcome(one, tried) for one in tried.outcomes)
    ]
    head = ("Settings", "Reserved at most", "Against the recorded", words.room(tried).capitalize())
    doubts = "".join(f'<p class="soft">Doubt: {escape(said)}.</p>' for said in tried.doubts)
    return (
        f"<p>{ticked(words.recommendation(tried))}.</p>{table(head, rows, (1, 2))}"
        f'<p class="soft">{escape(words.error(tried))}.</p>{doubts}'
    )


def _growth(difference: Difference, paths: words.Paths, most: int) -> str:
    title = f"From {shown(difference.before)} to {shown(difference.after)}"
    return f"<section><h2>{escape(title)}</h2>{''.join(_of_device(one, paths, most) for one in difference.devices)}</section>"


def _of_device(growth: Growth, paths: words.Paths, most: int) -> str:
    moved = format_bytes(growth.allocated_after - growth.allocated_before, signed=True)
    held = format_bytes(growth.reserved_after - growth.reserved_before, signed=True)
    rows = [
        [
            format_bytes(one.grown, signed=True),
            format_bytes(one.before),
            format_bytes(one.after),
            f"{one.blocks_after - one.blocks_before:+,}",
            _stack(one.line, paths),
        ]
        for one in _ends(growth, most)
    ]
    head = ("Change", "Before", "After", "Blocks", "Line")
    body = table(head, rows, (0, 1, 2, 3)) if rows else "<p>The same lines have the same alive.</p>"
    doubt = f'<p class="soft">Doubt: {escape(words.STRANGERS)}</p>' if growth.strangers else ""
    return f"<h3>Device {growth.device}: allocated {moved}, reserved {held}</h3>{body}{doubt}"


def _ends(growth: Growth, most: int) -> tuple[Change, ...]:
    """What grew most, and what shrank most."""
    changes = growth.changes
    return changes if len(changes) <= 2 * most else (*changes[:most], *changes[-most:])
