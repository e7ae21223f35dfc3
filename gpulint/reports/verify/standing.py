"""What a run saw besides growth: memory that nothing touches, cycles, host memory, contexts of workers; as text and on the page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from gpulint.config import shown_path
from gpulint.reports.layout import Line, printable, quoted
from gpulint.reports.verify.notes import note, remark, source_line
from gpulint.reports.verify.page import fact_list, table, ticked
from gpulint.runtime.parent.standing import context_text, host_text, idle_text, tied_text
from gpulint.runtime.parent.verdict import Verification
from gpulint.source.sources import Sources
from gpulint.units import format_bytes

_MOST = 8


class _Entry(NamedTuple):
    """One thing that is held at a line: a badge, what it is, and facts about it."""

    badge: str
    file: str
    line: int
    text: str
    facts: list[tuple[str, str]]


def _entries(verification: Verification) -> Iterator[_Entry]:
    for one in verification.idle[:_MOST]:
        facts = [("holder", one.what.text + _ranks(one.ranks))]
        if one.what.born:
            facts.append(("born", ", ".join(one.what.born)))
        yield _Entry("untouched", one.what.file, one.what.line, idle_text(one), facts)
    for tie in verification.tied[:_MOST]:
        facts = [("cut", tie.what.cut + _ranks(tie.ranks))] if tie.what.cut else []
        if tie.what.born:
            facts.append(("born", ", ".join(tie.what.born)))
        yield _Entry("in cycles", tie.what.file, tie.what.line, tied_text(tie), facts)


def _remarks(verification: Verification) -> Iterator[tuple[str, str, str]]:
    """Label, style and text."""
    if verification.unjudged:
        yield "not judged", "error", verification.unjudged
    for growth in verification.host_growth:
        yield "on the host", "warning", host_text(growth) + _ranks(growth.ranks)
    for context in verification.run.contexts:
        yield "worker on the GPU", "warning", context_text(context)
    limited = verification.gate is not None and verification.gate.limits.untouched is not None
    doubts = dict.fromkeys(rank.besides.doubt for rank in verification.run.ranks)
    for doubt in filter(None, doubts) if verification.idle or limited else ():
        yield "note", "faint", f"Of memory that nothing touches not all is known: {doubt}."


def standing_lines(verification: Verification, sources: Sources, columns: int | None) -> Iterator[Line]:
    """All of it, as lines of text."""
    for entry in _entries(verification):
        where = f"{shown_path(entry.file)}:{entry.line}: " if entry.file and entry.line else ""
        yield []
        yield [(printable(where), "path"), (f"{entry.badge} ", "warning"), *quoted(printable(entry.text))]
        yield from source_line(entry.file, entry.line, sources)
        for label, text in entry.facts:
            yield from note(label, text, columns, len(str(entry.line)))
    said = list(_remarks(verification))
    yield from [[]] if said else []
    for label, style, text in said:
        yield from remark(label, style, text, columns)


def standing_section(verification: Verification) -> str:
    """All of it, as a section of the page; empty where there is nothing."""
    cards = [_card(entry) for entry in _entries(verification)]
    rows = [
        [f'<span class="badge {"bad" if style == "error" else "warn"}">{label}</span>', ticked(text)]
        for label, style, text in _remarks(verification)
    ]
    if not cards and not rows:
        return ""
    rest = table(("", "What was seen"), rows) if rows else ""
    return "<section><h2>Held, and not used</h2>\n" + "\n".join(cards) + rest + "</section>"


def _card(entry: _Entry) -> str:
    place = f"{shown_path(entry.file)}:{entry.line}" if entry.file and entry.line else ""
    facts = fact_list([(label.capitalize(), ticked(text)) for label, text in entry.facts])
    return (
        f'<article><header><span class="badge warn">{entry.badge}</span>'
        f'<span class="place mono">{escape(place)}</span><h3>{ticked(entry.text)}</h3></header>{facts}</article>'
    )


def standing_words(verification: Verification) -> list[str]:
    """For the last line: what is untouched, in all."""
    idle = sum(one.what.bytes for one in verification.idle)
    return [f"{format_bytes(idle)} untouched"] if idle else []


def _ranks(ranks: tuple[int, ...]) -> str:
    return f" (rank {', '.join(map(str, ranks))})" if ranks else ""
