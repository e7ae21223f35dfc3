"""A trial as Markdown, for a pull request or a job's summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from gpulint.config import shown_path
from gpulint.reports.trial import words
from gpulint.source.edits import unified_diff
from gpulint.trial.plan import Trial


def write(trial: Trial, out: TextIO, dry: bool) -> None:
    out.write("\n".join(_lines(trial, dry)) + "\n")


def _lines(trial: Trial, dry: bool) -> Iterator[str]:
    yield f"### gpulint tried the fixes of `{trial.target}`"
    yield ""
    yield f"**{_escaped(words.closing(trial, dry))}** {words.where(trial) if trial.attempts else ''}".rstrip()
    yield ""
    rows = words.rows(trial.gains)
    if rows:
        yield "| | before | after | change |"
        yield "|---|---:|---:|---:|"
        yield from (f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows)
        yield ""
    if trial.judged:
        yield "| fix | verdict | measured |"
        yield "|---|---|---|"
        for judged in words.in_order(trial):
            what = f"`{words.place(judged)}` {judged.fix.codes}: {_escaped(judged.fix.fix.message)}"
            yield f"| {what} | {judged.status} | {_escaped(words.told(judged))} |"
        yield ""
    for remark in words.remarks(trial):
        yield f"{_escaped(remark)}\n"
    for path, text in trial.texts.items():
        yield f"<details><summary>{shown_path(path)}</summary>\n"
        diff = unified_diff(trial.originals[path], text, shown_path(path))
        fence = "```" if "```" not in diff else "~~~~"
        yield f"{fence}diff\n{diff.rstrip()}\n{fence}\n</details>\n"


def _escaped(text: str) -> str:
    """Text that stays one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
