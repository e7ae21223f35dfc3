"""`--add-ignore`: write the comments that silence findings."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from gpulint.findings import Finding
from gpulint.lint.suppressions import Directive, directives
from gpulint.source.files import FileError, is_notebook, read_source, split_lines
from gpulint.source.notebooks import NotebookError, read_notebook

_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
# A file that cannot be read has no line to comment, and an unused comment is not helped by another.
_NEVER: Final = ("GPU000", "GPU001")


def ignore_in_files(findings: Iterable[Finding]) -> tuple[dict[str, int], dict[str, str]]:
    """Write the comments into the files; how many findings each silences, and which files could not be written, why."""
    from gpulint.fix.fixing import write_atomic

    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.code not in _NEVER:
            by_file.setdefault(finding.filename, []).append(finding)
    written: dict[str, int] = {}
    failed: dict[str, str] = {}
    for path, found in by_file.items():
        try:
            source = read_source(path)
            text = (_in_notebook if is_notebook(path) else add_ignores)(source.text, found)
            write_atomic(path, source.encode(text))
            written[path] = len(found)
        except (FileError, NotebookError) as error:
            failed[path] = error.message
        except OSError as error:
            failed[path] = f"cannot be written: {error.strerror or error}"
        except (SyntaxError, tokenize.TokenError):
            failed[path] = "no place for a comment was found: the running Python cannot tokenize it"
    return written, failed


def _in_notebook(text: str, findings: Iterable[Finding]) -> str:
    """`add_ignores` for a notebook's JSON, whose findings are placed in cells."""
    from gpulint.lint.cells import Places, join

    notebook = read_notebook(text)
    module = join(notebook)
    places = Places(module.text)
    moved: list[Finding] = []
    for finding in findings:
        first, last = (places.row(finding.cell or 1, row) for row in (finding.line, finding.end_line))
        moved.append(replace(finding, line=first, end_line=last))
    sources = module.sources(add_ignores(module.text, moved))
    if sources is None:
        raise NotebookError("a finding stands on a magic's line, where no comment can")
    return notebook.rewritten(sources)


def add_ignores(text: str, findings: Iterable[Finding]) -> str:
    """`text` with an ``ignore`` comment for every finding, on its line, or above its statement where none can stand.

    Raises SyntaxError or tokenize.TokenError where `text` is no Python.
    """
    lines = [list(match.groups()) for match in _LINE.finditer(text)]
    places = _Places(text)
    existing = {item.row: item for item in directives(text) if item.kind == "ignore" and item.codes != ("",)}
    on_line: dict[int, list[str]] = {}
    above: dict[int, list[str]] = {}
    for finding in findings:
        if finding.code in _NEVER:
            continue
        row = next((row for row in (finding.line, finding.end_line) if row in places.open_rows), None)
        wanted, key = (above, places.first_row(finding.line)) if row is None else (on_line, row)
        codes = wanted.setdefault(key, [])
        if finding.code not in codes:
            codes.append(finding.code)
    for row, codes in on_line.items():
        lines[row - 1][0] = _commented(lines[row - 1][0], codes, existing.get(row))
    for row in sorted(above, reverse=True):
        line, ending = lines[row - 1]
        indent = line[: len(line) - len(line.lstrip())]
        lines.insert(row - 1, [f"{indent}# gpulint: ignore[{', '.join(above[row])}]", ending or "\n"])
    return "".join(line + ending for line, ending in lines)


def _commented(line: str, codes: list[str], existing: Directive | None) -> str:
    if existing is None or existing.own_line:
        return f"{line.rstrip()}  # gpulint: ignore[{', '.join(codes)}]"
    closing = existing.listed[1] - 1
    missing = [code for code in codes if not existing.covers(code)]
    return line[:closing] + "".join(f", {code}" for code in missing) + line[closing:]


class _Places:
    """Where comments can stand: `open_rows` end outside strings and backslashes."""

    def __init__(self, text: str) -> None:
        normal = "\n".join(split_lines(text))
        self.open_rows: set[int] = set()
        self._starts: list[int] = []
        fresh = True
        for token in tokenize.generate_tokens(io.StringIO(normal).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL):
                self.open_rows.add(token.start[0])
                fresh = fresh or token.type == tokenize.NEWLINE
            elif fresh and token.type not in (tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT):
                self._starts.append(token.start[0])
                fresh = False

    def first_row(self, row: int) -> int:
        """The first row of the logical line that `row` is part of."""
        return max((start for start in self._starts if start <= row), default=row)
