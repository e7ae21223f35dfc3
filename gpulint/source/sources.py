"""Lines of files and cells by name, for whoever shows or remembers findings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpulint.findings import Finding
from gpulint.source.files import FileError, read_source, split_lines

if TYPE_CHECKING:
    from gpulint.source.notebooks import Notebook

_CELL = re.compile(r"(.+\.ipynb):cell ([0-9]+)")


class Sources:
    """Lines of the files and cells that findings are in, each file read once."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._texts = dict(known or {})
        self._lines: dict[tuple[str, int | None], list[str]] = {}
        self._notebooks: dict[str, Notebook | None] = {}

    def lines(self, path: str, cell: int | None = None) -> list[str]:
        """The lines of a file, or of a notebook's cell, without their ends; none where it cannot be read. A cell may also be
        named with its file: `book.ipynb:cell 3`."""
        if cell is None and (named := _CELL.fullmatch(path)):
            return self.lines(named[1], int(named[2]))
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
                self._texts[path] = read_source(path).text
            except FileError:
                self._texts[path] = ""
        return self._texts[path]

    def _source(self, path: str, number: int) -> str:
        notebook = self._notebook(path)
        cell = notebook.cell(number) if notebook is not None else None
        return cell.source if cell is not None else ""

    def _notebook(self, path: str) -> Notebook | None:
        if path not in self._notebooks:
            from gpulint.source.notebooks import NotebookError, read_notebook

            try:
                self._notebooks[path] = read_notebook(self._text(path))
            except NotebookError:
                self._notebooks[path] = None
        return self._notebooks[path]
