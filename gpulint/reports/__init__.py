"""Output formats, one file each. A format's module has ``write(report, out)``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final, TextIO

from gpulint.config import shown_path
from gpulint.files import FileError, is_regular, read_source, split_lines
from gpulint.findings import Finding, Severity
from gpulint.notebooks import Notebook, NotebookError, read_notebook
from gpulint.rule import Rule

FORMATS: Final = ("text", "concise", "json", "json-lines", "github", "gitlab", "junit", "sarif")


class Sources:
    """Lines of the files and cells that findings are in, each file read once."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._texts = dict(known or {})
        self._lines: dict[tuple[str, int | None], list[str]] = {}
        self._notebooks: dict[str, Notebook | None] = {}

    def lines(self, path: str, cell: int | None = None) -> list[str]:
        """The lines of a file, or of a notebook's cell, without their ends; none where it cannot be read."""
        if (path, cell) not in self._lines:
            self._lines[path, cell] = split_lines(
                self._text(path) if cell is None else self._source(path, cell)
            )
        return self._lines[path, cell]

    def of(self, finding: Finding) -> list[str]:
        """The lines that the finding's rows count: of its cell or of its file."""
        return self.lines(finding.filename, finding.cell)

    def file_rows(self, finding: Finding) -> tuple[int, int]:
        """The first and the last row of a finding in its file, also where the file is a notebook's JSON."""
        if finding.cell is None:
            return finding.line, finding.end_line
        rows = (finding.line, finding.end_line)
        first, last = (self.file_row(finding.filename, finding.cell, row) for row in rows)
        return first, last

    def file_row(self, path: str, cell: int, row: int) -> int:
        """The row of a notebook's JSON where the row of a cell is spelled."""
        notebook = self._notebook(path)
        return row if notebook is None else notebook.file_row(cell, row)

    def _text(self, path: str) -> str:
        if path not in self._texts:
            try:
                # A pipe would be waited for, and what was in it has been read.
                self._texts[path] = read_source(path).text if is_regular(path) else ""
            except FileError:
                self._texts[path] = ""
        return self._texts[path]

    def _source(self, path: str, number: int) -> str:
        notebook = self._notebook(path)
        cell = notebook.cell(number) if notebook is not None else None
        return cell.source if cell is not None else ""

    def _notebook(self, path: str) -> Notebook | None:
        if path not in self._notebooks:
            try:
                self._notebooks[path] = read_notebook(self._text(path))
            except NotebookError:
                self._notebooks[path] = None
        return self._notebooks[path]


@dataclass(frozen=True, slots=True)
class Report:
    """What a format shows: the findings left, those fixed, and how many files were read."""

    findings: list[Finding]
    fixed: list[Finding] = field(default_factory=list)
    checked: int = 0
    rules: tuple[type[Rule], ...] = ()
    sources: Sources = field(default_factory=Sources)
    unsafe: bool = False  # whether unsafe fixes were asked for
    quiet: bool = False
    colour: bool = False
    width: int | None = None  # columns of the terminal; None in a pipe, where nothing is wrapped

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)


def writer(name: str) -> Callable[[Report, TextIO], None]:
    """The function that writes the format called `name`."""
    write: Callable[[Report, TextIO], None] = import_module(f"gpulint.reports.{name.replace('-', '_')}").write
    return write


def shown(path: str) -> str:
    """A file name for people: relative to the working directory where it lies below it."""
    return shown_path(path)


def full(path: str) -> str:
    """A file name for programs: absolute, but ``<stdin>`` as it is."""
    return path if path.startswith("<") else os.path.abspath(path)


def checkout() -> str:
    """What a CI service takes paths relative to: the top of the checkout where the working directory is in one, as its
    variables tell; otherwise the working directory."""
    here = os.getcwd()
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        top = os.path.realpath(os.environ.get(variable) or os.devnull)
        if os.path.join(here, "").startswith(os.path.join(top, "")):
            return top
    return here


def in_checkout(path: str) -> str | None:
    """The path relative to `checkout()`, with slashes; None where it lies outside, or is no file's."""
    if path.startswith("<"):
        return None
    relative = os.path.relpath(full(path), checkout())
    return None if relative.startswith(os.pardir) else relative.replace(os.sep, "/")


def place(finding: Finding) -> str:
    """Row and column for people, with the cell of a notebook: ``12:5``, ``cell 3:12:5``."""
    return place_in(finding.cell, finding.line, finding.column)


def details(finding: Finding) -> Iterator[str]:
    """What a finding has to say besides its message, for formats that have one text for all of it."""
    yield from filter(
        None, (finding.reason, f"Doubt: {finding.doubt}" if finding.doubts else "", finding.cost)
    )


def in_cell(finding: Finding) -> str:
    """What a message begins with where its reader is shown the rows of a notebook's JSON: ``cell 3, line 12: ``."""
    return "" if finding.cell is None else f"cell {finding.cell}, line {finding.line}: "


def place_in(cell: int | None, row: int, column: int) -> str:
    """`place` of anything else."""
    return f"{row}:{column}" if cell is None else f"cell {cell}:{row}:{column}"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
