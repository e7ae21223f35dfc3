"""Whole networks copied as they are, where they are, to be kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir

if TYPE_CHECKING:
    pass

Guards = tuple[ir.Stmt, ...]


def with_guards(block: list[ir.Stmt], guards: Guards) -> Iterator[tuple[ir.Stmt, Guards]]:
    """Each statement of a block with the loops and branches around it, outermost first."""
    for statement in block:
        yield statement, guards
        inner = (*guards, statement) if isinstance(statement, (ir.If, ir.For, ir.While)) else guards
        for part in statement.blocks():
            yield from with_guards(part, inner)
