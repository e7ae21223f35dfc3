"""Limits in the verifier's text and in Markdown: what every rank reached, what was too much, and the lines it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from gpulint.config import shown_path
from gpulint.reports import plural
from gpulint.reports.layout import Line, Span, printable, quoted
from gpulint.reports.verify.notes import note, remark, source_line
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.gate import Check, Gate, LineAtPeak, Neighbour, PeakOfRank
from gpulint.source.sources import Sources
from gpulint.units import format_bytes

STRETCHES = {
    "start": "start",
    "steps": "sampled steps",
    "evaluation": "evaluation",
    "later": "later",
}
_STYLES = {"exceeded": "error", "fell": "warning", "within": "good"}
_MOST_RANKS = 16


def gate_lines(verification: Verification, sources: Sources, columns: int | None) -> Iterator[Line]:
    """Contexts on the cards of others, and the run held against its limits."""
    for foreign in verification.foreign:
        yield []
        yield from remark("foreign context", "warning", foreign.text, columns)
    gate = verification.gate
    if gate is None:
        return
    if gate.ranks or gate.problems:
        yield []
    yield from _peaks(gate, verification.failed)
    for problem in gate.problems:
        yield from remark("problem", "error", problem, columns)
    for check in gate.checks:
        if check.status == "exceeded":
            yield []
            yield from _exceeded(check, sources, columns)
    quiet = [check for check in gate.checks if check.status != "exceeded"]
    yield from [[]] if quiet or gate.notes or gate.neighbours else []
    for check in quiet:
        yield from remark(f"{check.status} {limit_name(check)}", _STYLES[check.status], check.text, columns)
    for one in gate.neighbours:
        yield from remark("shared card", "warning", neighbour_text(one), columns)
    for said in gate.notes:
        yield from remark("note", "faint", said, columns, "faint")
    if gate.written is not None:
        text = f"{plural(gate.written, 'peak')} written to {shown_path(gate.limits.baseline)}"
        yield from remark("baseline", "good", text, columns)


def _peaks(gate: Gate, failed: bool) -> Iterator[Line]:
    """One row for each rank: its peaks by stretch, and what is not limited."""
    if not gate.ranks:
        return
    until = ", until the script failed" if failed else ""
    yield [(f"peaks{until}", "strong"), (f": {gate.measured}", "")]
    for peak in gate.ranks[:_MOST_RANKS]:
        name = f"rank {peak.rank}: " if len(gate.ranks) > 1 else ""
        yield [("  ", ""), (name, "strong"), (", ".join(figures(peak)), "")]
    if len(gate.ranks) > _MOST_RANKS:
        yield [
            (
                f"  … and {len(gate.ranks) - _MOST_RANKS} more ranks (--output-format json has them all)",
                "faint",
            )
        ]


def figures(peak: PeakOfRank) -> list[str]:
    """The figures of one rank, in words."""
    said = [f"{STRETCHES.get(peak.main, peak.main)} {format_bytes(peak.allocated)}"]
    said += [f"{STRETCHES.get(name, name)} {format_bytes(size)}" for name, size in peak.others.items()]
    if peak.reserved is not None:
        said.append(f"reserved {format_bytes(peak.reserved)} (not limited)")
    return said


def limit_name(check: Check) -> str:
    """The option that sets the limit."""
    return "the baseline" if check.limit == "baseline" else f"--{check.limit}"


def _exceeded(check: Check, sources: Sources, columns: int | None) -> Iterator[Line]:
    first = check.lines[0] if check.lines else None
    located = first is not None and bool(first.file)
    where = f"{first.file}:{first.line}: " if first is not None and located else ""
    yield [
        (printable(where), "path"),
        (f"exceeded {limit_name(check)} ", "error"),
        *quoted(printable(check.text)),
    ]
    if first is None:
        return
    if located:
        yield from source_line(first.path, first.line, sources)
    margin = len(str(first.line))
    for label, text in line_facts(check):
        yield from note(label, text, columns, margin)


def line_facts(check: Check) -> list[tuple[str, str]]:
    """What is to be said of the lines of a check: the first with its holder, then the others."""
    first, *others = check.lines
    facts = [("grew" if first.grew is not None else "most", _amount(first))]
    facts.append(("holder", holder_text(first)))
    if others:
        facts.append(("then", "; ".join(f"{place(line)}: {_short(line)}" for line in others)))
    return facts


def place(line: LineAtPeak) -> str:
    """`train.py:9 in forward`."""
    if not line.file:
        return "no Python line (backward, or a library's thread)"
    return f"{line.file}:{line.line}{_within(line)}"


def _within(line: LineAtPeak) -> str:
    """Empty at the top of a module."""
    return f" in `{line.function}`" if line.function != "<module>" else ""


def _amount(line: LineAtPeak) -> str:
    at = f"here{_within(line)}" if line.file else f"at {place(line)}"
    text = f"{format_bytes(line.bytes)} of the peak were allocated {at}"
    if line.grew is None:
        return text
    if line.before is None:
        return f"{text}; the baseline lists no such line, so {format_bytes(line.grew)} of it are new"
    return f"{text}, {format_bytes(line.grew)} more than the {format_bytes(line.before)} in the baseline"


def _short(line: LineAtPeak) -> str:
    return format_bytes(line.bytes) if line.grew is None else f"{format_bytes(line.grew)} more"


def holder_text(line: LineAtPeak) -> str:
    """Who keeps the bytes, as far as they outlive the step."""
    if not line.kept:
        return "freed before the step ends; until then local variables or the graph of the backward hold it"
    rest = (
        ""
        if line.kept >= line.bytes
        else f" ({format_bytes(line.kept)} of it, the rest is freed before the step ends)"
    )
    return (line.holder or "it outlives the step, and no variable was found that holds it") + rest


def neighbour_text(one: Neighbour) -> str:
    """Who else is on a card."""
    size = "" if one.bytes is None else f" with {format_bytes(one.bytes)}"
    command = f" ({' '.join(one.command.split())[:80]})" if one.command else ""
    who = f"process {one.pid}{command}" if one.pid else "a process that cannot be seen from here"
    came = "was there" if one.when == "before" else "came while the program ran"
    return (
        f"{who} {came} on {one.card}{size}: figures of what this program allocates stay right, "
        "what is left for it and its step times do not"
    )


def gate_headline(verification: Verification) -> Span | None:
    """The outcome in a few words, for the last line; None where nothing limits the peak."""
    gate = verification.gate
    limited = gate is not None and (gate.limits.on_peak or gate.limits.beside_peak or gate.problems)
    if gate is None or verification.failed or not limited:
        return None
    if gate.problems:
        return "Not held against its limits", "error"
    if gate.exceeded:
        on_peak = all(check.limit in ("max-peak", "baseline") for check in gate.exceeded)
        return f"{plural(len(gate.exceeded), 'limit')}{' on the peak' if on_peak else ''} exceeded", "error"
    if not gate.limits.on_peak:
        return "Within its limits", "good"
    return "Peak within its limits" if gate.checks else "Peak measured", "good"


# -- Markdown --------------------------------------------------------------------------------------------------


def markdown(verification: Verification) -> str:
    """The same for a pull request, or the page of a job."""
    return "\n".join(_markdown(verification)) + "\n"


def _markdown(verification: Verification) -> Iterator[str]:
    gate = verification.gate
    headline = gate_headline(verification)
    said = verification.trouble if verification.failed else headline[0] if headline else "No limit"
    yield f"### GPU memory of `{verification.target}`"
    yield ""
    drift = f" It drifts by {verification.said_drift}." if verification.drifting else ""
    yield f"**{cell(said)}.**{drift}"
    yield ""
    if gate is None:
        return
    for problem in gate.problems:
        yield f"{cell(problem)}\n"
    if gate.ranks:
        yield "| rank | stretch | peak allocated | baseline | change | limit |"
        yield "|---:|---|---:|---:|---:|---:|"
        yield from (f"| {' | '.join(row)} |" for peak in gate.ranks for row in rows(peak, gate))
        yield ""
        yield f"Sizes are those of {cell(gate.measured)}; reserved memory is not limited.\n"
    for check in gate.exceeded:
        yield f"- {cell(check.text)}"
        if check.lines:
            yield f"  - {cell(place(check.lines[0]))}: `{check.lines[0].code.replace('`', '')}`"
            yield from (f"  - {label}: {cell(text)}" for label, text in line_facts(check))
    for one in verification.foreign:
        yield f"- {cell(one.text)}"
    for neighbour in gate.neighbours:
        yield f"- {cell(neighbour_text(neighbour))}"
    for text in gate.notes:
        yield f"- {cell(text)}"


def rows(peak: PeakOfRank, gate: Gate) -> Iterator[list[str]]:
    """Rank, stretch, peak, what the baseline says, the change, the limit that holds for it."""
    checks = [check for check in gate.checks if check.rank == peak.rank]
    limit = "" if gate.limits.max_peak is None else format_bytes(gate.limits.max_peak)
    for name, size in ((peak.main, peak.allocated), *peak.others.items()):
        known = next((c for c in checks if c.limit == "baseline" and c.stretch == name), None)
        before, change = "", ""
        if known is not None and known.before is not None:
            before = format_bytes(known.before)
            change = format_bytes(known.now - known.before, signed=True)
            change = f"**{change}**" if known.status == "exceeded" else change
        shown = format_bytes(size)
        over = gate.limits.max_peak is not None and size > gate.limits.max_peak
        yield [
            str(peak.rank),
            STRETCHES.get(name, name),
            f"**{shown}**" if over else shown,
            before,
            change,
            limit,
        ]


def cell(text: str) -> str:
    """Text that stays one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
