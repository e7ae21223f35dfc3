"""Notebooks that are open in an editor, which sends their cells as documents: put together as the JSON that gpulint reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


class CellText(Protocol):
    """A cell's document."""

    @property
    def uri(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def content(self) -> str: ...


Cell = TypeVar("Cell", bound=CellText)


@dataclass(frozen=True, slots=True, eq=False)
class Book(Generic[Cell]):
    """One state of a notebook: its cells, and which of them are code. Cells are numbered from 1, as in findings."""

    uri: str
    path: str | None
    cells: tuple[tuple[Cell, bool], ...]

    @property
    def content(self) -> str:
        """The notebook's JSON, without outputs."""
        cells = [
            {
                "cell_type": "code" if is_code else "markdown",
                "metadata": {"vscode": {"languageId": cell.language}},
                "source": cell.content,
            }
            for cell, is_code in self.cells
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    def number(self, cell: Cell) -> int:
        """The number of a cell; 0 where it is not in this state of the notebook."""
        return next((place for place, (other, _) in enumerate(self.cells, 1) if other is cell), 0)

    def cell(self, number: int) -> Cell:
        """The inverse of `number`. Raises IndexError."""
        return self.cells[number - 1][0]

    def sources(self, content: str) -> Iterator[tuple[Cell, str]]:
        """The cells with their sources in `content`, which is this notebook's JSON after fixing."""
        fixed: list[dict[str, Any]] = json.loads(content)["cells"]
        for (cell, _), told in zip(self.cells, fixed, strict=True):
            source = told["source"]
            yield cell, source if isinstance(source, str) else "".join(source)
