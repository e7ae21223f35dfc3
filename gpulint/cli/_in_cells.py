"""What was measured of the script of a notebook's cells, told as of the cells."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from gpulint.lint.cells import Places

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InCells:
    """From `script` to the cells of `notebook`, both absolute paths: records with a file and a line, and texts that name places."""

    script: str
    notebook: str
    places: Places

    def told(self, value: T) -> T:
        """A record, with all that is in it. A place in the script becomes `book.ipynb:cell 3` and the line in that cell."""
        moved: Any = self._moved(value)
        return moved  # type: ignore[no-any-return]

    def _moved(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, tuple):
            return tuple(map(self._moved, value))
        if isinstance(value, dict):
            return {key: self._moved(one) for key, one in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        return value

    def _record(self, value: Any) -> Any:
        changes = {
            field.name: self._moved(getattr(value, field.name)) for field in fields(value) if field.init
        }
        if getattr(value, "file", "") == self.script and isinstance(
            line := getattr(value, "line", None), int
        ):
            changes |= self._place(value, line)
        return replace(value, **changes)

    def _place(self, value: Any, line: int) -> dict[str, Any]:
        cell, row = self.places.cell(line)
        changes: dict[str, Any] = {"file": f"{self.notebook}:cell {cell}", "line": row}
        if hasattr(value, "end_line"):
            changes["end_line"] = max(row, value.end_line - line + row)
        if hasattr(value, "lines"):  # those in the same cell: a record has one file
            cells = map(self.places.cell, value.lines)
            changes["lines"] = tuple(other for number, other in cells if number == cell)
        return changes

    def _text(self, text: str) -> str:
        if os.path.basename(self.script) not in text:
            return text
        text = re.sub(rf'File "{re.escape(self.script)}", line (\d+)', self._frame, text)
        text = re.sub(rf"\b{re.escape(os.path.basename(self.script))}:(\d+)", self._named, text)
        return text.replace(self.script, self.notebook)

    def _frame(self, found: re.Match[str]) -> str:
        cell, row = self.places.cell(int(found[1]))
        return f'File "{self.notebook}:cell {cell}", line {row}'

    def _named(self, found: re.Match[str]) -> str:
        cell, row = self.places.cell(int(found[1]))
        return f"{os.path.basename(self.notebook)}:cell {cell}:{row}"
