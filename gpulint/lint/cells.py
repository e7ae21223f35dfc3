"""A notebook's code cells as one Python module, and the way back from the module to the cells.

The cells of a notebook run in one namespace, one after another, so they are analysed as what they are together. In the
module each cell follows a line that names it. Cells in other languages are left out, and so are those that do not parse.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from gpulint.findings import Edit, Finding, Fix, Position, Related
from gpulint.lint.suppressions import CELL as _MARK
from gpulint.source.magics import HIDDEN, Hiding, cell_language, loaded_magics
from gpulint.source.notebooks import Cell, Notebook
from gpulint.source.syntax import SourceError, flaw

_MARKED: Final = re.compile(r"[^\r\n]*" + _MARK + r"([0-9]+)\n")
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
# What a cell that cannot be read may do to the values of other cells.
_TELLING: Final = re.compile(r"backward|grad|inference_mode|detach")
_UNREAD: Final = "#\ue002"  # before the number of such a cell


@dataclass(frozen=True, slots=True)
class CellModule:
    """The cells as one module's `text`. `flaws` say why cells were left out, by their numbers; the places count in the cells.

    Where one of these may decide what holds in the others, a comment at the end of the text says so: see `unread_cell`.
    """

    text: str
    flaws: dict[int, SourceError]
    _notebook: Notebook
    _hiding: Hiding

    def sources(self, text: str) -> dict[int, str] | None:
        """The cells' sources after the module has become `text`; None where an IPython line or a cell got lost."""
        parts = _MARKED.split(text.partition(_UNREAD)[0])
        numbers = [int(number) for number in parts[1::2]]
        if parts[0] or numbers != [int(number) for number in _MARKED.findall(self.text)]:
            return None
        if self._hiding.numbers(text) != self._hiding.numbers(self.text):
            return None
        found: dict[int, str] = {}
        for number, body in zip(numbers, parts[2::2], strict=True):
            cell = self._notebook.cell(number)
            restored = self._hiding.restore(body)
            if cell is None or restored is None:
                return None
            found[number] = restored.removesuffix(_newline(cell.source))
        return found


def join(notebook: Notebook) -> CellModule:
    """The module that the notebook's cells are together."""
    hiding = Hiding(frozenset().union(*(loaded_magics(cell.source) for cell in notebook.cells)))
    pieces: list[str] = []
    flaws: dict[int, SourceError] = {}
    unread: list[str] = []
    for cell in notebook.cells:
        ours = any(mark[1] in cell.source for mark in (HIDDEN, _MARK, _UNREAD))
        if ours or not cell.source.strip() or cell_language(cell.source):
            continue
        code, wrong = _python(cell, hiding)
        if wrong is None:
            pieces.append(code)
        else:
            flaws[cell.number] = wrong
            unread += [f"{_UNREAD}{cell.number}\n"] if _TELLING.search(cell.source) else []
    return CellModule("".join((*pieces, *unread[:1])) if pieces else "", flaws, notebook, hiding)


def unread_cell(text: str) -> int | None:
    """The number of a cell that a module's text leaves out although it may decide what holds in the others."""
    number = text.rpartition(_UNREAD)[2].strip() if _UNREAD in text else ""
    return int(number) if number.isdecimal() else None


def _python(cell: Cell, hiding: Hiding) -> tuple[str, SourceError | None]:
    """A cell with its mark above it, and why Python refuses it."""
    # IPython takes the indentation of a cell's first line from all of its lines.
    indented = cell.source.lstrip("\r\n")[:1] in (" ", "\t")
    wrong: SourceError | None = None
    for automagic in (False, True):
        code = hiding.hide(cell.source, automagic) + _newline(cell.source)
        for lead in ("if True:", "") if indented else ("",):
            found = flaw(f"{lead}\n{code}", is_cell=True)
            if found is None:
                return f"{lead}{_MARK}{cell.number}\n{code}", None
            found.line = max(found.line - 1, 1)
            wrong = wrong or found
    return "", wrong


def _newline(source: str) -> str:
    found = _NEWLINE.search(source)
    return found.group() if found else "\n"


class Places:
    """From rows of a module's text to rows of its cells."""

    def __init__(self, text: str) -> None:
        self._rows: list[int] = []
        self._numbers: list[int] = []
        self._hidden: dict[int, int] = {}  # rows of IPython's lines, and the column after their indentation
        for row, line in enumerate(_NEWLINE.split(text), start=1):
            if HIDDEN in line:
                self._hidden[row] = len(line) - len(line.lstrip()) + 1
            if _MARK in line:
                self._rows.append(row)
                self._numbers.append(int(line.partition(_MARK)[2]))

    def cell(self, row: int) -> tuple[int, int]:
        """The number of the cell that a row is in, and the row in it."""
        place = max(bisect_right(self._rows, row) - 1, 0)
        return self._numbers[place], max(row - self._rows[place], 1)

    def row(self, cell: int, row: int) -> int:
        """The inverse of `cell`."""
        return self._rows[self._numbers.index(cell)] + row

    def in_cells(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with rows that count in their cells. A fix that does not keep to them is left out."""
        return [self._in_cell(finding) for finding in findings]

    def _in_cell(self, finding: Finding) -> Finding:
        number, row = self.cell(finding.line)
        shift = finding.line - row
        return replace(
            finding,
            cell=number,
            line=row,
            end_line=max(finding.end_line - shift, row),
            fix=self._fix(finding.fix),
            related=tuple(self._related(finding.filename, other) for other in finding.related),
        )

    def _related(self, filename: str, other: Related) -> Related:
        if other.filename != filename:
            return other
        number, row = self.cell(other.position.row)
        return replace(other, position=Position(row, other.position.column), cell=number)

    def _fix(self, fix: Fix | None) -> Fix | None:
        if fix is None:
            return None
        edits = [self.edit(edit) for edit in fix.edits]
        kept = tuple(edit for edit in edits if edit is not None)
        return replace(fix, edits=kept) if len(kept) == len(edits) else None

    def edit(self, edit: Edit) -> Edit | None:
        """An edit with rows that count in its cell; None where it reaches over a cell's bounds."""
        # What begins or ends at the start of a cell's mark ends the cell before it.
        first, last = self._before(edit.start), self._before(edit.end)
        if first is None or first != last or self._touches_hidden(edit):
            return None
        mark = self._rows[first]
        return replace(
            edit,
            start=replace(edit.start, row=edit.start.row - mark),
            end=replace(edit.end, row=edit.end.row - mark),
            cell=self._numbers[first],
        )

    def _touches_hidden(self, edit: Edit) -> bool:
        return edit.start != edit.end and any(
            (row, column) < (edit.end.row, edit.end.column)
            for row, column in self._hidden.items()
            if edit.start.row <= row <= edit.end.row
        )

    def _before(self, place: Position) -> int | None:
        """The index of the cell that a place is in; None on a mark."""
        found = bisect_right(self._rows, place.row) - 1
        if found >= 0 and self._rows[found] == place.row:
            return found - 1 if place.column == 1 and found else None
        return found if found >= 0 else None
