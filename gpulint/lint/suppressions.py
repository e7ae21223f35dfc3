"""What comments silence, and a GPU001 for those that silence nothing.

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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from gpulint.findings import Edit, Finding, Fix, Position, Severity
from gpulint.lint.selection import BUILT_IN
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
    r"\s*\[(?P<inside>[^\[\]]*)\](?:\s*--.*)?|\s*=\s*(?P<after>[\w-]+(?:\s*,\s*[\w-]+)*)(?:\s*--.*)?"
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
# Above each cell of a notebook: no comment of one cell speaks about the next.
CELL: Final = "#\ue001"
_CODES: Final = "GPU"  # how our codes begin: a noqa with other ones is for other tools


def suppressed(
    text: str,
    findings: Sequence[Finding],
    statement_first_line: Callable[[int], int],
    filename: str = "",
    checked: Collection[str] = (),
    known: Mapping[str, str] | None = None,
) -> list[Finding]:
    """The findings that no comment in `text` silences, and a GPU001 for each comment of gpulint's that
    silences none.

    `statement_first_line` gives the first row of the innermost statement around a row. `checked` are the
    codes whose rules have run: a comment for a rule that did not run is not called unused. `known` are the names
    of a project's own rules by code, beside gpulint's.
    """
    ours = speaks_to_us(text)
    if not ours and not (findings and "noqa" in text.lower()):
        return list(findings)
    known = {**BUILT_IN, **(known or {})}
    comments = _Comments(text, _relevant_rows(text, findings, statement_first_line), known)
    kept = [finding for finding in findings if not comments.silence(finding, statement_first_line)]
    if ours:
        unused = comments.unused(filename, frozenset(checked) - {"GPU000", "GPU001"}, {*checked, *known})
        kept += [finding for finding in unused if not comments.silence(finding, statement_first_line)]
    return sorted(kept, key=lambda finding: finding.sort_key)


def directives(text: str) -> list[Directive]:
    """Every suppression comment in `text`, in order."""
    found = _read(text, lambda row, line: True)
    return [item.with_codes(_shipped_codes()) for item in found if not item.problem]


def _relevant_rows(
    text: str, findings: Iterable[Finding], statement_first_line: Callable[[int], int]
) -> Callable[[int, str], bool]:
    """Which lines' comments can matter: ours always, noqa only where a finding is. Tokenizing is slow."""
    rows = {row for finding in findings for row in _rows(finding, statement_first_line)}
    return lambda row, line: row in rows or speaks_to_us(line)


def _rows(finding: Finding, statement_first_line: Callable[[int], int]) -> tuple[int, int, int]:
    return finding.line, finding.end_line, statement_first_line(finding.line)


class _Comments:
    """The comments of one file, and which of them have silenced something."""

    def __init__(self, text: str, relevant: Callable[[int, str], bool], known: Mapping[str, str]) -> None:
        names = {**_shipped_codes(), **{name: code for code, name in known.items()}}
        self._lines = split_lines(text)
        self._all = [item.with_codes(names) for item in _read(text, relevant)]
        self._used: set[tuple[int, int, str]] = set()
        self._by_row: dict[int, list[Directive]] = {}
        for item in self._all:
            if item.kind in ("ignore", "noqa"):
                self._by_row.setdefault(self._subject_row(item), []).append(item)
        self._blocks = [(item, self._block_end(item)) for item in self._all if item.kind == "disable"]

    def silence(self, finding: Finding, statement_first_line: Callable[[int], int]) -> bool:
        """Whether a comment silences the finding; every one that does counts as used."""
        hits = [
            item for row in set(_rows(finding, statement_first_line)) for item in self._by_row.get(row, ())
        ]
        hits += [item for item in self._all if item.kind == "ignore-file"]
        hits += [item for item, end in self._blocks if item.row <= finding.line <= end]
        hits = [item for item in hits if item.covers(finding.code)]
        for item in hits:
            self._used.update(
                (item.row, item.start, code) for code in item.codes if finding.code.startswith(code)
            )
        return bool(hits)

    def unused(self, filename: str, checked: Collection[str], known: Collection[str]) -> list[Finding]:
        """A GPU001 for each of gpulint's own comments with codes that silenced nothing and could have, or never can."""
        found: list[Finding] = []
        for item in self._all:
            ours = [code for code in item.codes if item.kind != "noqa" or code.startswith(_CODES)]
            if problem := item.problem or _unknown(ours, known):
                found.append(_problem(filename, item, f"suppression that silences nothing: {problem}"))
            if item.kind in ("enable", "noqa") or "GPU001" in item.codes:
                continue
            idle = [
                code
                for code in item.codes
                if (item.row, item.start, code) not in self._used
                and any(known.startswith(code) for known in checked)
            ]
            if idle:
                found.append(self._unused(filename, item, idle))
        return found

    def _unused(self, filename: str, item: Directive, idle: list[str]) -> Finding:
        rest = [code for code in item.codes if code not in idle]
        what = "it silences nothing" if idle == [""] else f"there is no {' or '.join(idle)} to silence here"
        edit = self._without_codes(item, rest) if rest else self._without_comment(item)
        fix = Fix("safe", "take out the unused suppression", (edit,))
        return _problem(filename, item, f"unused suppression: {what}", fix)

    @staticmethod
    def _without_codes(item: Directive, rest: list[str]) -> Edit:
        first, last = (Position(item.row, column) for column in item.listed)
        return Edit(first, last, ", ".join(code or "ALL" for code in rest))

    def _without_comment(self, item: Directive) -> Edit:
        """Take out the comment, the space before it, and the line where nothing else is on it."""
        line = self._lines[item.row - 1]
        before, after = line[: item.start - 1], line[item.end - 1 :]
        if after.strip():  # another comment follows, or text that the pattern did not take in
            following = item.end + len(after) - len(after.lstrip())
            lead = "" if after.lstrip().startswith("#") else "# "
            return Edit(Position(item.row, item.start), Position(item.row, following), lead)
        if before.strip():
            return Edit(Position(item.row, len(before.rstrip()) + 1), Position(item.row, len(line) + 1), "")
        if item.row < len(self._lines):
            return Edit(Position(item.row, 1), Position(item.row + 1, 1), "")
        return Edit(Position(item.row, 1), Position(item.row, len(line) + 1), "")

    def _subject_row(self, item: Directive) -> int:
        """The row a comment speaks about: its own, or for a comment on a line of its own the next row of code."""
        if not item.own_line or item.kind == "noqa":
            return item.row
        return next((row for row, line in self._following(item.row) if _is_code(line)), item.row)

    def _block_end(self, item: Directive) -> int:
        """The last row of a `disable`: before the `enable` of its codes, or where its block ends."""
        ends = [
            other.row
            for other in self._all
            if other.kind == "enable"
            and other.row > item.row
            and set(other.codes) & {*item.codes, *EVERYTHING}
        ]
        last = min(ends, default=len(self._lines) + 1) - 1
        indent = item.start - 1 if item.own_line else _indent(self._lines[item.row - 1])
        for row, line in self._following(item.row):
            if _is_code(line) and _indent(line) < indent:
                return min(last, row - 1)
        return last

    def _following(self, row: int) -> Iterable[tuple[int, str]]:
        return enumerate(self._lines[row:], start=row + 1)


def _is_code(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and (not stripped.startswith("#") or stripped.startswith(CELL))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _problem(filename: str, item: Directive, message: str, fix: Fix | None = None) -> Finding:
    """A comment that was never needed may be taken out; one that does not do what was meant is a mistake."""
    return Finding(
        code="GPU001",
        name="unused-suppression",
        severity=Severity.WARNING if fix is None else Severity.INFO,
        message=message,
        filename=filename,
        line=item.row,
        column=item.start,
        end_line=item.row,
        end_column=item.end,
        fix=fix,
    )


def _unknown(codes: Iterable[str], known: Collection[str]) -> str:
    """What to say of the first code that covers no rule; empty where there is none."""
    from gpulint.config import nearest_rule

    names = {code: name for name, code in _shipped_codes().items()}
    names |= {code: "" for code in known if code not in names}
    for code in codes:
        if not any(one.startswith(code) for one in names):
            written = code.lower() if "-" in code or "_" in code else code
            return f'there is no rule "{written}"{nearest_rule(written, names)}'
    return ""


# -- the comments as they are written ---------------------------------------------------------------------------


@cache
def _shipped_codes() -> Mapping[str, str]:
    """The codes of gpulint's own rules by name."""
    from gpulint.rules import names

    return {name: code for code, name in names().items()}


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


def _read(text: str, relevant: Callable[[int, str], bool]) -> list[Directive]:
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
            found.append(_directive("noqa", row, line, match.span(), codes, problem=problem))
    return found


def _misread(noqa: re.Match[str], rest: str) -> str:
    """What is wrong with a noqa that names a rule of gpulint otherwise than by its code; nothing where it names none."""
    following = _NEXT.match(rest)
    if following is None:
        return ""
    word = following["word"]
    code = _shipped_codes().get(word.lower(), "")
    if code or (noqa["codes"] is None and _OUR_CODE.fullmatch(word)):
        return f'"{word}" is not how noqa names a rule; write noqa: {code or word.upper()}'
    return ""


def _ours(row: int, line: str, match: re.Match[str]) -> Directive:
    word, rest, listed = match["word"], match["rest"], _LIST.match(match["rest"])
    kind = next((kind for kind in _KINDS if kind == word.lower()), None)
    codes = EVERYTHING if listed is None else _codes(listed["inside"] or listed["after"])
    problem = ""
    if match["colon"] is None:
        problem = "it lacks the colon after gpulint"
    elif kind is None:
        problem = f'"{word}" is no suppression'
    elif listed is None and _REASON.fullmatch(rest) is None:
        problem = f'"{rest.strip()}" is neither a list of codes nor a reason'
    elif not codes:
        problem = "it names no rule"
    if kind is None or problem:
        end = match.start() + len(match[0].rstrip())
        return _directive("ignore", row, line, (match.start(), end), (), problem=f"{problem}; {_WRITE}")
    at = match.start("rest")
    if listed is None:
        return _directive(kind, row, line, (match.start(), at + len(rest) if rest.strip() else at), codes)
    group = "inside" if listed["inside"] is not None else "after"
    places = at + listed.start(group) + 1, at + listed.end(group) + 1
    found = _directive(kind, row, line, (match.start(), at + listed.end()), codes, places)
    # As in pylint, whose spelling this is: behind code it is about the line.
    as_pylint = group == "after" and kind == "disable" and not found.own_line
    return replace(found, kind="ignore") if as_pylint else found


def _directive(
    kind: Kind,
    row: int,
    line: str,
    columns: tuple[int, int],
    codes: tuple[str, ...],
    listed: tuple[int, int] = (0, 0),
    problem: str = "",
) -> Directive:
    own_line = not line[: columns[0]].strip()
    return Directive(kind, row, columns[0] + 1, columns[1] + 1, codes, own_line, listed, problem)


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
