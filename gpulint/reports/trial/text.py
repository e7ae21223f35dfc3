"""A trial for people at a terminal: the diff, what became of each fix, and one table before and after.

::

    train.py: 3 runs in 21 s, on NVIDIA H200, torch 2.11.0

    pays  GPU201 train.py:67  decorate `evaluate` with `@torch.no_grad()`
          drift in evaluation 541.00 KiB a step → 512 B a step; peak 13.86 MiB → 2.77 MiB

                             before      after   change
    drift in evaluation  541.00 KiB…    512 B…   -100 %
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TextIO

from gpulint.config import shown_path
from gpulint.reports.layout import Line, paint, printable, quoted
from gpulint.reports.lint.diff import diff_lines
from gpulint.reports.trial import words
from gpulint.trial.plan import Judged, Trial

_STYLES = {
    "pays": "good",
    "changes the result": "error",
    "breaks": "error",
    "cannot be compared": "warning",
    "changes nothing": "info",
    "not reached": "faint",
    "not tried": "faint",
}


def write(trial: Trial, out: TextIO, dry: bool, colour: bool = False, columns: int | None = None) -> None:
    """Write everything. `dry` says that the fixes are not to be applied; `columns` is the terminal's width, None in a pipe."""
    plain = not (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    lines = list(_lines(trial, dry, columns))
    if plain:
        lines = [[(text.replace("→", "->"), style) for text, style in line] for line in lines]
    paint(lines, out, colour)


def _lines(trial: Trial, dry: bool, columns: int | None) -> Iterator[Line]:
    if trial.attempts:
        yield [(printable(trial.target), "path"), (f": {words.where(trial)}", "")]
        yield []
    if trial.texts and dry:
        for path, text in trial.texts.items():
            yield from diff_lines(shown_path(path), trial.originals[path], text)
        yield []
    for judged in words.in_order(trial):
        yield from _fix(judged, columns)
    if trial.judged:
        yield []
    yield from _table(trial)
    for remark in words.remarks(trial):
        yield from _wrapped(remark, columns, "", "faint")
    if trial.noise:
        yield []
    yield [(printable(words.closing(trial, dry)), "strong")]


def _fix(judged: Judged, columns: int | None) -> Iterator[Line]:
    fix = judged.fix
    yield [
        (judged.status, _STYLES[judged.status]),
        (f"  {fix.codes} ", "code"),
        (printable(words.place(judged)), "path"),
        ("  ", ""),
        *quoted(printable(fix.fix.message)),
    ]
    yield from _wrapped(words.told(judged), columns, "    ")


def _wrapped(text: str, columns: int | None, indent: str, style: str = "") -> Iterator[Line]:
    said = printable(" ".join(text.split()))
    if columns is None:
        yield [(indent, ""), *quoted(said, style)]
        return
    for line in textwrap.wrap(said, max(columns - len(indent), 40), break_on_hyphens=False):
        yield [(indent, ""), *quoted(line, style)]


def _table(trial: Trial) -> Iterator[Line]:
    rows = words.rows(trial.gains)
    if not rows:
        return
    table = [("", "before", "after", "change"), *rows]
    first, *others = words.widths(table)
    for number, (name, *figures) in enumerate(table):
        cells = "".join(f"  {text:>{width}}" for text, width in zip(figures, others, strict=True))
        yield [(f"{name:<{first}}", "" if number else "faint"), (cells, "strong" if number else "faint")]
    yield []
