"""A unified diff that `patch` and `git apply` take; of a notebook one for each cell, as its reader sees it."""

from __future__ import annotations

from collections.abc import Iterator

from gpulint.reports.layout import Line
from gpulint.source.edits import unified_diff
from gpulint.source.notebooks import is_notebook, read_notebook


def diff_lines(path: str, before: str, after: str) -> Iterator[Line]:
    """The difference between two texts of the file at `path`, with three lines of context."""
    if not is_notebook(path):
        yield from _lines(unified_diff(before, after, path))
        return
    old, new = read_notebook(before), read_notebook(after)
    for cell, changed in zip(old.cells, new.cells, strict=True):
        if cell.source != changed.source:
            yield from _lines(unified_diff(cell.source, changed.source, f"{path}:cell {cell.number}"))


def _lines(diff: str) -> Iterator[Line]:
    # Only \n ends a line of a diff: a \r belongs to the line before it.
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        yield [(line, _style(line))]


def _style(line: str) -> str:
    if line.startswith("\\"):
        return "faint"
    if line.startswith(("---", "+++")):
        return "strong"
    return {"-": "removed", "+": "added", "@": "code"}.get(line[:1], "")
