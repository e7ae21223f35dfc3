"""Patterns of `.gitignore`, `exclude` and `per-file-ignores`, matched as git does, in a time that no pattern makes explode.

pathspec translates a pattern into a regular expression that tries every way to divide a name among its stars: with ten of them
more ways than there is time for. The first place where a star's following text is found is as good as any later one, so
that here each star but the last of a row takes that and never comes back to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count
from typing import Any, Final

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_FOLDERS: Final = "(?:/.+)?"  # `**` between two parts of a pattern
_FOLDERS_FIRST: Final = "^(?:.+/)?"  # and before the first
# What follows a star up to the next: characters, escaped ones, and sets of them.
_STAR_BETWEEN: Final = re.compile(
    r"\[\^/\]\*(?P<text>(?:(?!\[\^/\]\*)(?:\\.|\[\^?\]?[^\]]*\]|[^/()\\\[]))*)(?=\[\^/\]\*)"
)


class UnreadablePattern(ValueError):
    """No pattern that git would read."""


class _Pattern(GitIgnoreSpecPattern):
    __slots__ = ()

    @classmethod
    def pattern_to_regex(cls, pattern: Any) -> Any:
        regex, include = super().pattern_to_regex(pattern)
        return (_without_return(regex) if isinstance(regex, str) else regex), include


def ignore_spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """The patterns of some lines together. Raises `UnreadablePattern`."""
    try:
        return GitIgnoreSpec.from_lines(lines, _Pattern)
    except (ValueError, re.error, OverflowError, RecursionError) as error:
        raise UnreadablePattern(str(error)) from None


def _without_return(regex: str) -> str:
    numbers = count()

    def first(found: str) -> str:
        """The first place alone: an atomic group, which Python writes so only from 3.11 on."""
        name = f"first{next(numbers)}"
        return f"(?=(?P<{name}>{found}))(?P={name})"

    regex = _STAR_BETWEEN.sub(lambda star: first(f"[^/]*?{star['text']}") if star["text"] else "", regex)
    head, *rest = regex.split(_FOLDERS)
    if not rest:
        return regex
    *between, last = rest
    if head.startswith(_FOLDERS_FIRST):
        head = "^" + first(f"(?:[^/]+/)*?{head[len(_FOLDERS_FIRST) :]}(?=/)")
    return head + "".join(first(f"(?:/[^/]+)*?{part}(?=/)") for part in between) + _FOLDERS + last
