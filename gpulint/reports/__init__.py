"""Output formats of findings, in `lint`, and what reports say alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final, TextIO

from gpulint.config import OUTPUT_FORMATS
from gpulint.config import shown_path as shown_path
from gpulint.findings import Finding, Severity
from gpulint.source.sources import Sources
from gpulint.units import plural as plural

if TYPE_CHECKING:
    from gpulint.rule import Rule

FORMATS: Final = OUTPUT_FORMATS
_FOR_PEOPLE: Final = ("text", "concise", "grouped")


@dataclass(frozen=True, slots=True)
class Report:
    """What a format shows: the findings left, those fixed, and how many files were read."""

    findings: list[Finding]
    fixed: list[Finding] = field(default_factory=list)
    checked: int = 0
    doubtful: int = 0  # findings that are less certain than asked for
    rules: Callable[[], tuple[type[Rule], ...]] = tuple  # all that are known, for a format that lists them
    sources: Sources = field(default_factory=Sources)
    unsafe: bool = False  # whether unsafe fixes were asked for
    quiet: bool = False
    fix_only: bool = False  # whether findings that are left are not told
    show_fixes: bool = False
    everything: bool = False  # under --verbose: also what was said before
    links: bool = False  # whether codes lead to their pages
    colour: bool = False
    width: int | None = None  # columns of the terminal; None in a pipe, where nothing is wrapped

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)


def writer(name: str) -> Callable[[Report, TextIO], None]:
    """The function that writes the format called `name`."""
    module = "" if name in _FOR_PEOPLE else ".sarif" if name == "sarif" else ".services"
    found = getattr(import_module(f"gpulint.reports.lint{module}"), f"write_{name.replace('-', '_')}")
    write: Callable[[Report, TextIO], None] = found
    return write


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
    doubt = f"Doubt: {finding.doubt}" if finding.doubts else ""
    measured = f"Measured elsewhere: {finding.measured}" if finding.measured else ""
    yield from filter(None, (finding.reason, doubt, finding.cost, measured))


def in_cell(finding: Finding) -> str:
    """What a message begins with where its reader is shown the rows of a notebook's JSON: ``cell 3, line 12: ``."""
    return "" if finding.cell is None else f"cell {finding.cell}, line {finding.line}: "


def place_in(cell: int | None, row: int, column: int) -> str:
    """`place` of anything else."""
    return f"{row}:{column}" if cell is None else f"cell {cell}:{row}:{column}"
