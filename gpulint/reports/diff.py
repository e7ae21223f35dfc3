"""A unified diff that `patch` and `git apply` take."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Final

from gpulint.reports.layout import Line

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def diff_lines(path: str, before: str, after: str) -> Iterator[Line]:
    """The difference between two texts of the file at `path`, with three lines of context."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
        ended = line.endswith(("\n", "\r"))
        yield [(line.removesuffix("\n"), _style(line))]
        if not ended:
            yield [("\\ No newline at end of file", "faint")]


def _style(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "strong"
    return {"-": "removed", "+": "added", "@": "code"}.get(line[:1], "")
