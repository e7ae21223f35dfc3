"""A trial as one self-contained page: the figures before and after, both curves on one plot, each diff beside its gain."""

from __future__ import annotations

from html import escape

from gpulint.config import shown_path
from gpulint.reports.trial import words
from gpulint.reports.trial.curves import figure
from gpulint.reports.verify.page import fact_list, page, table, ticked
from gpulint.source.edits import apply_edits, unified_diff
from gpulint.trial.plan import Judged, Trial

_CLASSES = {
    "pays": "good",
    "changes the result": "bad",
    "breaks": "bad",
    "cannot be compared": "warn",
    "changes nothing": "info",
    "not reached": "mute",
    "not tried": "mute",
}


def write_page(trial: Trial, dry: bool) -> str:
    """The whole page."""
    body = [_head(trial, dry), _table(trial), _curves(trial), _fixes(trial), _remarks(trial), _runs(trial)]
    return page(f"gpulint verify --fix: {trial.target}", body)


def _head(trial: Trial, dry: bool) -> str:
    style = "bad" if trial.failure else "good" if trial.paying else "info"
    soft = f'<p class="soft">{escape(words.where(trial))}</p>' if trial.attempts else ""
    said = ticked(words.closing(trial, dry))
    return (
        f"<header><h1>{escape(trial.target)}</h1>{soft}"
        f'<p class="banner {style}" role="status"><strong>{said}</strong></p></header>'
    )


def _table(trial: Trial) -> str:
    rows = [[escape(cell) for cell in row] for row in words.rows(trial.gains)]
    if not rows:
        return ""
    return f"<section><h2>Before and after</h2>{table(('', 'Before', 'After', 'Change'), rows, (1, 2, 3))}</section>"


def _curves(trial: Trial) -> str:
    drawn = figure(trial.before, trial.after) if trial.before is not None and trial.after is not None else ""
    return f"<section><h2>Memory by step, before and after</h2>{drawn}</section>" if drawn else ""


def _fixes(trial: Trial) -> str:
    if not trial.judged:
        return ""
    cards = "\n".join(_card(one, trial) for one in words.in_order(trial))
    return f"<section><h2>Every fix, tried</h2>\n{cards}</section>"


def _card(judged: Judged, trial: Trial) -> str:
    fix = judged.fix
    facts = [("Measured", ticked(words.told(judged, most=10)))]
    facts += [("Finding", ticked(finding.message)) for finding in fix.findings]
    if not fix.is_safe:
        facts.append(("Doubt", ticked(fix.fix.unsafe_because or "the linter has not proven that it is safe")))
    if judged.is_our_defect:
        facts.append(("Defect", f"this fix was called safe; please report it: {escape(words.REPORT_URL)}"))
    return (
        f'<article><header><span class="badge {_CLASSES[judged.status]}">{escape(judged.status)}</span>'
        f'<span class="place mono">{escape(words.place(judged))}</span>'
        f"<h3><code>{escape(fix.codes)}</code> {ticked(fix.fix.message)}</h3></header>"
        f"{_diff(judged, trial)}{fact_list(facts)}</article>"
    )


def _diff(judged: Judged, trial: Trial) -> str:
    """The fix alone, as a diff without its head."""
    before = trial.originals.get(judged.fix.file)
    if before is None:
        return ""
    after, _ = apply_edits(before, [judged.fix.first], unsafe=True)
    lines = unified_diff(before, after, shown_path(judged.fix.file)).splitlines()[2:]
    styles = {"+": "added", "-": "removed", "@": "n"}
    rows = "".join(
        f'<span class="{styles.get(line[:1], "")}">{escape(line[:400]) or " "}</span>' for line in lines
    )
    return f'<pre class="source"><code>{rows}</code></pre>'


def _remarks(trial: Trial) -> str:
    said = "".join(f"<p>{ticked(remark)}</p>" for remark in words.remarks(trial))
    return f"<section><h2>How it was compared</h2>{said}</section>" if said else ""


def _runs(trial: Trial) -> str:
    if not trial.attempts:
        return ""
    rows = [
        [str(number), escape(attempt.label), escape(attempt.outcome), f"{attempt.seconds:.1f} s"]
        for number, attempt in enumerate(trial.attempts, 1)
    ]
    head = ("Run", "The script", "Came out as", "Time")
    return f"<section><details><summary>Every run</summary>{table(head, rows, (0, 3))}</details></section>"
