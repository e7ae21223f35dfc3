"""Comments that silence findings, as they are written: where they stand, which rules they are about, what is wrong in them.

=========================================  ==================================================================
``# gpulint: ignore[GPU101] -- reason``    the line, or the statement whose first line it is on; on a line of
                                           its own, the statement below
``# gpulint: disable[GPU101]``             from here to ``enable[GPU101]`` or the end of the block
``# gpulint: ignore-file[GPU101]``         the file; without codes, everything
``# gpulint: disable=GPU101``              as pylint's: the line; on a line of its own, as disable[GPU101]
``# noqa: GPU101`` and bare ``# noqa``     the line, or the statement whose first line it is on
=========================================  ==================================================================

A code may be a prefix, ``ignore[GPU1]``, or a rule's name, ``ignore[held-graph]``. Without codes a comment silences every
rule. One that is written otherwise, or that names a rule which does not exist, has a `problem`.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from gpulint.source.files import split_lines

Kind = Literal["ignore", "ignore-file", "disable", "enable", "noqa"]

MARKER: Final = "gpulint:"
MARKER_BYTES: Final = b"gpulint:"
EVERYTHING: Final = ("",)  # the prefix of every code
# What a comment that is meant for gpulint may begin with, right or wrong; in lower case.
_MEANT: Final = re.compile(
    r"gpulint:|#\s*gpulint\s+(?:ignore|disable|enable)\b|#\s*noqa[^#\n]*?(?:\bgpu\d|[a-z]-[a-z])"
)
_OURS: Final = re.compile(
    r"#\s*gpulint(?:(?P<colon>:)\s*|\s+(?=(?:ignore|disable|enable)\b))(?P<word>[^\s\[\](){}=:,#]*)(?P<rest>[^#]*)",
    re.IGNORECASE,
)
_LIST: Final = re.compile(
    r"\s*\[(?P<inside>[^\[\]]*)\](?P<why>\s*--.*)?|\s*=\s*(?P<after>[\w-]+(?:\s*,\s*[\w-]+)*)(?P<reason>\s*--.*)?"
)
_REASON: Final = re.compile(r"\s*(?:--.*)?")
_NOQA: Final = re.compile(
    r"#\s*noqa(?![-\w])(?:\s*:\s*(?:(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)|(?P<unread>)))?",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"[A-Z]+[0-9]*", re.IGNORECASE)
_NEXT: Final = re.compile(r"[\s\[(=,-]{0,3}(?P<word>\w[\w-]*)")
_OUR_CODE: Final = re.compile(r"GPU[0-9]+", re.IGNORECASE)
_KINDS: Final[tuple[Kind, ...]] = ("ignore", "ignore-file", "disable", "enable")
_WRITE: Final = "write # gpulint: ignore[GPU101], with a reason after --"


@cache
def shipped_codes() -> Mapping[str, str]:
    """The codes of gpulint's own rules by name."""
    from gpulint.rules import all_rules

    return {rule.name: rule.code for rule in all_rules()}


def speaks_to_us(text: str) -> bool:
    """Whether a comment in `text` (a line, a file) is, or seems to be, meant for gpulint. Quick where none is."""
    lowered = text.lower()
    return ("gpulint" in lowered or "noqa" in lowered) and _MEANT.search(lowered) is not None


@dataclass(frozen=True, slots=True)
class Directive:
    """One comment. `codes` are upper-case codes or prefixes; `start` and `end` are the comment's columns, from 1, and
    `listed` those of the list of codes. One with a `problem` silences nothing."""

    kind: Kind
    row: int
    start: int
    end: int
    codes: tuple[str, ...]
    reason: str
    own_line: bool
    listed: tuple[int, int] = (0, 0)
    problem: str = ""

    def covers(self, code: str) -> bool:
        """Whether this comment is about `code`. That it is unused itself, it has to be told by name."""
        named = tuple(filter(None, self.codes)) if code == "GPU001" else self.codes
        return code.startswith(named)

    def with_codes(self, names: Mapping[str, str]) -> Directive:
        """With the code where a rule's name is written; `names` are codes by name."""
        if all(code in EVERYTHING or _CODE.fullmatch(code) for code in self.codes):
            return self
        return replace(
            self, codes=tuple(names.get(code.lower().replace("_", "-"), code) for code in self.codes)
        )


def read(text: str, relevant: Callable[[int, str], bool]) -> list[Directive]:
    """The comments in `text`, in order, those with a problem too; of lines that are not `relevant`, none."""
    lines = split_lines(text)
    found = [
        directive
        for row, line in enumerate(lines, start=1)
        if "#" in line and relevant(row, line)
        for directive in _in_line(row, line)
    ]
    if not found:
        return []
    comments = _comment_starts(text)
    if comments is None:  # it does not tokenize: what looks like a comment is taken for one
        return found
    return [item for item in found if comments.get(item.row, len(lines[item.row - 1]) + 1) <= item.start]


def _in_line(row: int, line: str) -> list[Directive]:
    found: list[Directive] = []
    found += [_ours(row, line, match) for match in _OURS.finditer(line)]
    for match in _NOQA.finditer(line):
        problem = _misread(match, line[match.end() :])
        if problem or match["unread"] is None:
            codes = () if problem else _codes(match["codes"]) or EVERYTHING
            found.append(replace(_directive("noqa", row, line, match.span(), codes, ""), problem=problem))
    return found


def _misread(noqa: re.Match[str], rest: str) -> str:
    """What is wrong with a noqa that names a rule of gpulint otherwise than by its code; nothing where it names none."""
    following = _NEXT.match(rest)
    if following is None:
        return ""
    word = following["word"]
    code = shipped_codes().get(word.lower(), "")
    if code or (noqa["codes"] is None and _OUR_CODE.fullmatch(word)):
        return f'"{word}" is not how noqa names a rule; write noqa: {code or word.upper()}'
    return ""


def _ours(row: int, line: str, match: re.Match[str]) -> Directive:
    word, rest = match["word"], match["rest"]
    kind = next((kind for kind in _KINDS if kind == word.lower()), None)
    listed = _LIST.match(rest)
    if match["colon"] is None:
        return _wrong(row, line, match, f"it lacks the colon after gpulint; {_WRITE}")
    if kind is None:
        return _wrong(row, line, match, f'"{word}" is no suppression; {_WRITE}')
    if listed is None:
        reason = _REASON.fullmatch(rest)
        if reason is None:
            return _wrong(
                row, line, match, f'"{rest.strip()}" is neither a list of codes nor a reason; {_WRITE}'
            )
        end = match.start("rest") + (len(rest) if reason[0].strip() else 0)
        return _directive(kind, row, line, (match.start(), end), EVERYTHING, _reason(rest))
    codes = _codes(listed["inside"] or listed["after"])
    if not codes:
        return _wrong(row, line, match, f"it names no rule; {_WRITE}")
    group = "inside" if listed["inside"] is not None else "after"
    found = _directive(
        kind,
        row,
        line,
        (match.start(), match.start("rest") + listed.end()),
        codes,
        _reason(listed["why"] or listed["reason"] or ""),
        (match.start("rest") + listed.start(group) + 1, match.start("rest") + listed.end(group) + 1),
    )
    # As in pylint, whose spelling this is: behind code it is about the line.
    as_pylint = group == "after" and kind == "disable" and not found.own_line
    return replace(found, kind="ignore") if as_pylint else found


def _wrong(row: int, line: str, match: re.Match[str], problem: str) -> Directive:
    columns = match.start(), match.start() + len(match[0].rstrip())
    return replace(_directive("ignore", row, line, columns, (), ""), problem=problem)


def _reason(written: str) -> str:
    return written.strip().removeprefix("--").strip()


def _directive(
    kind: Kind,
    row: int,
    line: str,
    columns: tuple[int, int],
    codes: tuple[str, ...],
    reason: str,
    listed: tuple[int, int] = (0, 0),
) -> Directive:
    own_line = not line[: columns[0]].strip()
    return Directive(kind, row, columns[0] + 1, columns[1] + 1, codes, reason, own_line, listed)


def _codes(written: str | None) -> tuple[str, ...]:
    """The codes of a list, and whatever else stands in it, which no rule has for a code. ALL is every rule's prefix."""
    found = (code.upper() for code in re.split(r"[\s,]+", written or "") if code)
    return tuple("" if code == "ALL" else code for code in found)


def _comment_starts(text: str) -> dict[int, int] | None:
    """For each row with a comment the column, from 1, where it starts; None where the text does not tokenize."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    found: dict[int, int] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(normal).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.start[1] + 1
    except (tokenize.TokenError, SyntaxError, RecursionError, MemoryError):
        return None
    return found
