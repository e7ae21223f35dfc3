"""Limits on the verifier's page."""

from __future__ import annotations

from html import escape

from gpulint.reports.verify.gate import limit_name, line_facts, neighbour_text, place, rows
from gpulint.reports.verify.page import fact_list, table, ticked
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.gate import Check, Gate

_CLASSES = {"exceeded": "bad", "fell": "warn", "within": "good"}


def gate_section(verification: Verification) -> str:
    """The peaks beside their limits; empty where there are none, and no rank is on the card of another."""
    gate = verification.gate
    parts = [_card("warn", "foreign context", "", one.text) for one in verification.foreign]
    if gate is not None:
        parts += [_table(gate)] if gate.ranks else []
        parts += [_card("bad", "problem", "", problem) for problem in gate.problems]
        parts += [_check(check) for check in gate.checks]
        parts += [_card("warn", "shared card", "", neighbour_text(one)) for one in gate.neighbours]
        parts += [f'<p class="soft">{ticked(said)}</p>' for said in gate.notes]
    if not parts:
        return ""
    return "<section><h2>Peaks and limits</h2>\n" + "\n".join(parts) + "</section>"


def _check(check: Check) -> str:
    first = check.lines[0] if check.lines else None
    where = place(first).replace("`", "") if first is not None else ""
    facts = []
    if first is not None:
        facts = [("Line", f"<code>{escape(first.code)}</code>")] if first.code else []
        facts += [(label.capitalize(), ticked(text)) for label, text in line_facts(check)]
    return _card(
        _CLASSES[check.status], f"{check.status} {limit_name(check)}", where, check.text, fact_list(facts)
    )


def _card(style: str, badge: str, where: str, text: str, more: str = "") -> str:
    return (
        f'<article><header><span class="badge {style}">{escape(badge)}</span>'
        f'<span class="place mono">{escape(where)}</span><h3>{ticked(text)}</h3></header>{more}</article>'
    )


def _table(gate: Gate) -> str:
    head = ("Rank", "Stretch", "Peak allocated", "Baseline", "Change", "Limit")
    listed = [
        [escape(one.replace("**", "")) for one in row] for peak in gate.ranks for row in rows(peak, gate)
    ]
    return f'{table(head, listed, (0, 2, 3, 4, 5))}<p class="soft">Sizes are those of {escape(gate.measured)}.</p>'
