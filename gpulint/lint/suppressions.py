"""Comments that silence findings, and those that silence nothing (GPU001).

=========================================  ==================================================================
``# gpulint: ignore[GPU101] -- reason``    the line, or the statement whose first line it is on; on a line of
                                           its own, the statement below
``# gpulint: disable[GPU101]``             from here to ``enable[GPU101]`` or the end of the block
``# gpulint: ignore-file[GPU101]``         the file; without codes, everything
``# gpulint: disable=GPU101``              as pylint's: the line; on a line of its own, as disable[GPU101]
``# noqa: GPU101`` and bare ``# noqa``     the line, or the statement whose first line it is on
=========================================  ==================================================================

A code may be a prefix: ``ignore[GPU1]``. Without codes a comment silences every rule. One that is written otherwise, or
that names a rule which does not exist, silences nothing for it, and GPU001 says so.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from gpulint.findings import Edit, Finding, Fix, Position, Severity
from gpulint.source.files import split_lines

Kind = Literal["ignore", "ignore-file", "disable", "enable", "noqa"]

MARKER: Final = "gpulint:"
MARKER_BYTES: Final = b"gpulint:"
# Above each cell of a notebook: no comment of one cell speaks about the next.
CELL: Final = "#\ue001"
_OURS: Final = re.compile(r"#\s*gpulint:\s*(?P<word>[^\s\[\](){}=:,#]*)(?P<rest>[^#]*)", re.IGNORECASE)
_LIST: Final = re.compile(
    r"\s*\[(?P<inside>[^\[\]]*)\](?P<why>\s*--.*)?|\s*=\s*(?P<after>[\w-]+(?:\s*,\s*[\w-]+)*)(?P<reason>\s*--.*)?"
)
_REASON: Final = re.compile(r"\s*(?:--.*)?")
_NOQA: Final = re.compile(
    r"#\s*noqa(?![-\w])(?:\s*:\s*(?:(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)|(?P<unread>)))?",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"[A-Z]+[0-9]*", re.IGNORECASE)
_KINDS: Final[tuple[Kind, ...]] = ("ignore", "ignore-file", "disable", "enable")
_WRITE: Final = "write ignore[GPU101], with a reason after --"
_EVERYTHING: Final = ("",)  # the prefix of every code


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


def suppressed(
    text: str,
    findings: Sequence[Finding],
    statement_first_line: Callable[[int], int],
    filename: str = "",
    checked: Collection[str] = (),
    known: Collection[str] = (),
) -> list[Finding]:
    """The findings that no comment in `text` silences, and a GPU001 for each comment of gpulint's that
    silences none.

    `statement_first_line` gives the first row of the innermost statement around a row. `checked` are the
    codes whose rules have run: a comment for a rule that did not run is not called unused. `known` are those
    of a project's own rules, beside gpulint's.
    """
    ours = MARKER in text.lower()
    if not ours and not (findings and "noqa" in text.lower()):
        return list(findings)
    comments = _Comments(text, _relevant_rows(text, findings, statement_first_line))
    kept = [finding for finding in findings if not comments.silence(finding, statement_first_line)]
    if ours:
        unused = comments.unused(filename, frozenset(checked) - {"GPU000", "GPU001"}, {*checked, *known})
        kept += [finding for finding in unused if not comments.silence(finding, statement_first_line)]
    return sorted(kept, key=lambda finding: finding.sort_key)


def directives(text: str) -> list[Directive]:
    """Every suppression comment in `text`, in order."""
    return [item for item in _directives(text, lambda row, line: True) if not item.problem]


def _relevant_rows(
    text: str, findings: Iterable[Finding], statement_first_line: Callable[[int], int]
) -> Callable[[int, str], bool]:
    """Which lines' comments can matter: ours always, noqa only where a finding is. Tokenizing is slow."""
    rows = {row for finding in findings for row in _rows(finding, statement_first_line)}
    return lambda row, line: row in rows or MARKER in line.lower()


def _rows(finding: Finding, statement_first_line: Callable[[int], int]) -> tuple[int, int, int]:
    return finding.line, finding.end_line, statement_first_line(finding.line)


def _directives(text: str, relevant: Callable[[int, str], bool]) -> list[Directive]:
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
        if match["unread"] is None:
            codes = _codes(match["codes"]) or _EVERYTHING
            found.append(_directive("noqa", row, line, match.span(), codes, ""))
    return found


def _ours(row: int, line: str, match: re.Match[str]) -> Directive:
    word, rest = match["word"], match["rest"]
    kind = next((kind for kind in _KINDS if kind == word.lower()), None)
    listed = _LIST.match(rest)
    if kind is None:
        return _wrong(row, line, match, f'"{word}" is no suppression; {_WRITE}')
    if listed is None:
        reason = _REASON.fullmatch(rest)
        if reason is None:
            return _wrong(
                row, line, match, f'"{rest.strip()}" is neither a list of codes nor a reason; {_WRITE}'
            )
        end = match.start("rest") + (len(rest) if reason[0].strip() else 0)
        return _directive(kind, row, line, (match.start(), end), _EVERYTHING, _reason(rest))
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


class _Comments:
    """The comments of one file, and which of them have silenced something."""

    def __init__(self, text: str, relevant: Callable[[int, str], bool]) -> None:
        self._lines = split_lines(text)
        self._all = _directives(text, relevant)
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
            if item.kind == "noqa":
                continue
            if problem := item.problem or _unknown(item.codes, known):
                found.append(_problem(filename, item, f"suppression that silences nothing: {problem}"))
            if item.kind == "enable" or "GPU001" in item.codes:
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
            following = len(after) - len(after.lstrip())
            if after.lstrip().startswith("#"):
                return Edit(Position(item.row, item.start), Position(item.row, item.end + following), "")
            return Edit(Position(item.row, item.start), Position(item.row, item.end + following), "# ")
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
            and set(other.codes) & {*item.codes, *_EVERYTHING}
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
    return Finding(
        code="GPU001",
        name="unused-suppression",
        severity=Severity.INFO,
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
    from gpulint.config import did_you_mean
    from gpulint.rules import all_rules

    names = {rule.code: rule.name for rule in all_rules()}
    every = sorted({*names, *known, "GPU000", "GPU001"})
    for code in codes:
        if not any(one.startswith(code) for one in every):
            by_name = next(
                (one for one, name in names.items() if name.upper() == code.replace("_", "-")), None
            )
            hint = f'; did you mean "{by_name}"?' if by_name else did_you_mean(code, every)
            return f'there is no rule "{code}"{hint}'
    return ""
