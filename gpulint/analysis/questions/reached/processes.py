"""Which processes of a program of several get to a statement: all of them, or one, as the tests on the way say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.following import conditions
from gpulint.analysis.code.reading import link_of
from gpulint.analysis.torch.ranks import COUNTS, FIRST, RANKS, SPREAD

if TYPE_CHECKING:
    pass

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def by_one_process(function: ir.Function, statement: ir.Stmt) -> bool:
    """Whether only one process runs a statement: the first, `if rank == 0:`, or the only one, `else` of `if distributed:`."""
    return any(_leaves_one(test, holds) for test, holds in conditions(function.body, statement))


def _leaves_one(test: ir.Expr, holds: bool) -> bool:
    """Whether a test that comes out so is of one process alone."""
    if isinstance(test, ir.Op) and test.op == "not":
        return _leaves_one(test.operands[0], not holds)
    if isinstance(test, ir.Op) and test.op in ("and", "or"):
        of_each = [_leaves_one(part, holds) for part in test.operands]
        return any(of_each) if (test.op == "and") is holds else all(of_each)
    if isinstance(test, ir.Op) and len(test.operands) == 2:
        return _compares_to_one(test, holds)
    word = _last(test)
    return word in (FIRST if holds else SPREAD)


def _compares_to_one(test: ir.Op, holds: bool) -> bool:
    left, right = test.operands
    op = link_of(test)
    if _last(right) in RANKS | COUNTS:
        left, right, op = right, left, _TURNED.get(op, op)
    number = _number(right)
    if _last(left) in RANKS:
        if isinstance(right, ir.Seq) and op in ("in", "not in"):
            return (op == "in") is holds and all(_number(item) in (-1, 0) for item in right.items)
        first = {("==", 0), ("==", -1), ("<=", 0), ("<", 1), ("<", 0)}
        others = {("!=", 0), ("!=", -1), (">", 0), (">", -1), (">=", 0), (">=", 1)}
        return (op, number) in (first if holds else others)
    if _last(left) in COUNTS:
        alone = {("==", 1), ("<=", 1), ("<", 2)}
        several = {("!=", 1), (">", 1), (">=", 2)}
        return (op, number) in (alone if holds else several)
    return False


def _last(expr: ir.Expr) -> str:
    """The word that a test asks: `is_main_process` of `accelerator.is_main_process` and of `utils.is_main_process()`."""
    if isinstance(expr, ir.Call):
        return expr.method
    if isinstance(expr, ir.Sub) and isinstance(expr.index, ir.Const):
        return str(expr.index.value)
    return expr.attr if isinstance(expr, ir.Attr) else expr.path or ""


def _number(expr: ir.Expr) -> object:
    if isinstance(expr, ir.Op) and expr.op == "neg":
        inner = _number(expr.operands[0])
        return -inner if isinstance(inner, int) else None
    return expr.value if isinstance(expr, ir.Const) else None
