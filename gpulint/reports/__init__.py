"""Output formats, one file each. A format's module has ``write(report, out)``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final, TextIO

from gpulint.config import shown_path
from gpulint.files import FileError, read_source, split_lines
from gpulint.findings import Finding, Severity
from gpulint.rule import Rule

FORMATS: Final = ("text", "concise", "json", "json-lines", "github", "gitlab", "junit", "sarif")


class Sources:
    """Lines of the files that findings are in, each file read once."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._lines: dict[str, list[str]] = {path: split_lines(text) for path, text in (known or {}).items()}

    def lines(self, path: str) -> list[str]:
        """The file's lines without their ends; none where it cannot be read."""
        if path not in self._lines:
            try:
                self._lines[path] = split_lines(read_source(path).text)
            except FileError:
                self._lines[path] = []
        return self._lines[path]


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


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
