"""Limits: what every rank reached, what was too much, and the lines it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpulint.config import shown_path
from gpulint.reports import plural
from gpulint.reports.document import Block, Card, Cell, Document, Say, Table, Value, section, whole_line
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.peaks import Check, Gate, LineAtPeak, Neighbour, PeakOfRank
from gpulint.source.sources import Sources
from gpulint.units import format_bytes

TITLE: Final = "Peaks and limits"
_STRETCHES: Final = {"steps": "sampled steps"}
_STYLES: Final = {"exceeded": "bad", "fell": "warn", "within": "good"}
_MOST_RANKS: Final = 16


def of_gate(verification: Verification) -> Document:
    """The limits alone, for a pull request or the page of a job."""
    headline = gate_headline(verification)
    return Document(
        f"GPU memory of {verification.target}",
        verification.target,
        f"It drifts by {verification.said_drift}." if verification.drifting else "",
        "",
        verification.trouble if verification.failed else headline or "No limit",
        (section(TITLE, gate_blocks(verification, Sources())),),
    )


def gate_blocks(verification: Verification, sources: Sources) -> Iterator[Block]:
    """Contexts on the cards of others, and the run held against its limits."""
    for foreign in verification.foreign:
        yield Say(foreign.text, "warn", "foreign context")
    gate = verification.gate
    if gate is None:
        return
    if gate.ranks:
        head = ("Rank", "Stretch", "Peak allocated", "Baseline", "Change", "Limit")
        rows = [row for peak in gate.ranks for row in _rows(peak, gate)]
        yield Table(head, rows, _MOST_RANKS * len(rows) // len(gate.ranks))
        until = " until the script failed" if verification.failed else ""
        yield Say(f"Peaks{until}, of {gate.measured}; reserved memory is not limited.", "soft")
    for problem in gate.problems:
        yield Say(problem, "bad", "problem")
    yield from (_exceeded(check, sources) for check in gate.exceeded)
    for check in gate.checks:
        if check.status != "exceeded":
            yield Say(check.text, _STYLES[check.status], f"{check.status} {_limit_name(check)}")
    for one in gate.neighbours:
        yield Say(_neighbour_text(one), "warn", "shared card")
    for said in gate.notes:
        yield Say(said, "mute", "note")
    if gate.written is not None:
        said = f"{plural(gate.written, 'peak')} written to {shown_path(gate.limits.baseline)}"
        yield Say(said, "good", "baseline")


def _rows(peak: PeakOfRank, gate: Gate) -> Iterator[tuple[Value, ...]]:
    """Rank, stretch, peak, what the baseline says, the change, the limit that holds for it."""
    rank, limit = str(peak.rank), gate.limits.max_peak
    known = {
        check.stretch: check
        for check in reversed(gate.checks)
        if check.rank == peak.rank and check.limit == "baseline"
    }
    for name, size in ((peak.main, peak.allocated), *peak.others.items()):
        check = known.get(name)
        before: Value = ""
        change: Value = ""
        if check is not None and check.before is not None:
            before, style = check.before, "bad" if check.status == "exceeded" else ""
            change = Cell(format_bytes(check.now - check.before, signed=True), style)
        shown = Cell(format_bytes(size), "bad" if limit is not None and size > limit else "")
        yield rank, _STRETCHES.get(name, name), shown, before, change, "" if limit is None else limit
    if peak.reserved is not None:
        yield rank, "reserved", peak.reserved, "", "", ""


def _limit_name(check: Check) -> str:
    """The option that sets the limit."""
    return "the baseline" if check.limit == "baseline" else f"--{check.limit}"


def _exceeded(check: Check, sources: Sources) -> Card:
    badge, facts, place, source = f"exceeded {_limit_name(check)}", tuple(_line_facts(check)), "", None
    if check.lines and check.lines[0].file:
        first = check.lines[0]
        place, source = f"{first.file}:{first.line}", whole_line(sources, first.path, first.line)
    return Card(badge, "bad", place, check.text, facts, excerpt=source)


def _line_facts(check: Check) -> Iterator[tuple[str, str]]:
    """What is to be said of the lines of a check: the first with its holder, then the others."""
    if not check.lines:
        return
    first, *others = check.lines
    yield "grew" if first.grew is not None else "most", _amount(first)
    yield "holder", _holder_text(first)
    if others:
        yield "then", "; ".join(f"{_place(line)}: {_short(line)}" for line in others)


def _place(line: LineAtPeak) -> str:
    """`train.py:9 in forward`."""
    if not line.file:
        return "no Python line (backward, or a library's thread)"
    return f"{line.file}:{line.line}{_within(line)}"


def _within(line: LineAtPeak) -> str:
    """Empty at the top of a module."""
    return f" in `{line.function}`" if line.function != "<module>" else ""


def _amount(line: LineAtPeak) -> str:
    at = f"here{_within(line)}" if line.file else f"at {_place(line)}"
    text = f"{format_bytes(line.bytes)} of the peak were allocated {at}"
    if line.grew is None:
        return text
    if line.before is None:
        return f"{text}; the baseline lists no such line, so {format_bytes(line.grew)} of it are new"
    return f"{text}, {format_bytes(line.grew)} more than the {format_bytes(line.before)} in the baseline"


def _short(line: LineAtPeak) -> str:
    return format_bytes(line.bytes) if line.grew is None else f"{format_bytes(line.grew)} more"


def _holder_text(line: LineAtPeak) -> str:
    """Who keeps the bytes, as far as they outlive the step."""
    if not line.kept:
        return "freed before the step ends; until then local variables or the graph of the backward hold it"
    kept = f" ({format_bytes(line.kept)} of it, the rest is freed before the step ends)"
    holder = line.holder or "it outlives the step, and no variable was found that holds it"
    return holder + (kept if line.kept < line.bytes else "")


def _neighbour_text(one: Neighbour) -> str:
    """Who else is on a card."""
    size = "" if one.bytes is None else f" with {format_bytes(one.bytes)}"
    command = f" ({' '.join(one.command.split())[:80]})" if one.command else ""
    who = f"process {one.pid}{command}" if one.pid else "a process that cannot be seen from here"
    came = "was there" if one.when == "before" else "came while the program ran"
    return (
        f"{who} {came} on {one.card}{size}: figures of what this program allocates stay right, "
        "what is left for it and its step times do not"
    )


def gate_headline(verification: Verification) -> str:
    """The outcome in a few words, for the last line; empty where nothing limits the peak."""
    gate = verification.gate
    limited = gate is not None and (gate.limits.on_peak or gate.limits.beside_peak or gate.problems)
    if gate is None or verification.failed or not limited:
        return ""
    if gate.problems:
        return "Not held against its limits"
    if gate.exceeded:
        on_peak = all(check.limit in ("max-peak", "baseline") for check in gate.exceeded)
        return f"{plural(len(gate.exceeded), 'limit')}{' on the peak' if on_peak else ''} exceeded"
    if not gate.limits.on_peak:
        return "Within its limits"
    return "Peak within its limits" if gate.checks else "Peak measured"
