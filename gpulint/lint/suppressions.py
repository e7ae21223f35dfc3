"""What comments silence, and a GPU001 for those that silence nothing. `gpulint.lint.comments` reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from gpulint.findings import Edit, Finding, Fix, Position, Severity
from gpulint.lint.comments import (
    EVERYTHING,
    MARKER,
    MARKER_BYTES,
    Directive,
    read,
    shipped_codes,
    speaks_to_us,
)
from gpulint.lint.selection import BUILT_IN
from gpulint.source.files import split_lines

__all__ = ["CELL", "MARKER", "MARKER_BYTES", "Directive", "directives", "speaks_to_us", "suppressed"]

# Above each cell of a notebook: no comment of one cell speaks about the next.
CELL: Final = "#\ue001"
_OURS: Final = "GPU"  # how our codes begin: a noqa with other ones is for other tools


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
    found = read(text, lambda row, line: True)
    return [item.with_codes(shipped_codes()) for item in found if not item.problem]


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
        names = {**shipped_codes(), **{name: code for code, name in known.items()}}
        self._lines = split_lines(text)
        self._all = [item.with_codes(names) for item in read(text, relevant)]
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
            ours = [code for code in item.codes if item.kind != "noqa" or code.startswith(_OURS)]
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

    names = {code: name for name, code in shipped_codes().items()}
    names |= {code: "" for code in known if code not in names}
    for code in codes:
        if not any(one.startswith(code) for one in names):
            written = code.lower() if "-" in code or "_" in code else code
            return f'there is no rule "{written}"{nearest_rule(written, names)}'
    return ""
