"""What has certainly run before a place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.syntax.nodes import at_once

_DEEPEST: Final = 3

Wanted = Callable[[ast.Call, Frame], bool]


def first_before(
    evaluator: Evaluator, node: Any, frame: Frame, wanted: Wanted, depth: int = _DEEPEST
) -> tuple[ast.Call, Frame] | None:
    """The first call of a kind that has certainly run when a node is got to: in all who call its function, in its module, or before it
    in the function, there and in what is called. None where none is seen."""
    function = frame.function
    if depth and not function.is_module:
        sites = evaluator.callers(function)
        found = [first_before(evaluator, one.call, one.frame, wanted, depth - 1) for one in sites]
        if found and None not in found:
            return found[0]
        body = function.file.body
        if all(one.frame.function is not body for one in sites):  # else it has not run to its end
            first = _first(evaluator, _certain(body.node.body), evaluator.root(body), wanted, depth)
            if first is not None:
                return first
    return _first(evaluator, _before(frame, node), frame, wanted, depth)


def _first(
    evaluator: Evaluator, nodes: Iterator[Any], frame: Frame, wanted: Wanted, depth: int
) -> tuple[ast.Call, Frame] | None:
    """The first of the calls among expressions, or in the functions that they run: what one is given comes before it."""
    calls = [one for one in nodes if isinstance(one, ast.Call)]
    for call in sorted(calls, key=lambda one: (one.end_lineno or 0, one.end_col_offset or 0)):
        target = evaluator.value_of(call.func, frame).ref
        inner = evaluator.enter(target, call, frame, None) if isinstance(target, Function) and depth else None
        if inner is not None:
            found = _first(evaluator, _certain(inner.function.node.body), inner, wanted, depth - 1)
            if found is not None:
                return found
        if wanted(call, frame):
            return call, frame
    return None


def _before(frame: Frame, node: Any) -> Iterator[Any]:
    """The expressions that are worked out for certain before a node is got to, in its own function."""
    flow = frame.flow
    statement = flow.statement_of(node)
    for block in flow.around(statement):
        yield from _certain(block.statements[: block.statements.index(statement)])
        if block.parent is not None:
            yield from at_once(block.owner)
        statement = flow.statement_of(block.owner)


def _certain(statements: Sequence[ast.stmt]) -> Iterator[Any]:
    """The expressions that are worked out for certain where statements run."""
    for statement in statements:
        yield from at_once(statement)
        if isinstance(statement, (ast.With, ast.Try)):
            yield from _certain(statement.body)
