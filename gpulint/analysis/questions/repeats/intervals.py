"""In every how many rounds a condition comes true, `(step + 1) % args.every == 0`, and a call is made under such conditions."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_periodic
from gpulint.analysis.flow.flow import is_availability
from gpulint.analysis.questions.size.constructing import Constructing
from gpulint.analysis.torch.backward import runs_backward

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import HotCall


def every_how_many(call: HotCall) -> int | None:
    """In every how many rounds the conditions around a call let it be made: 1 where they ask for a GPU alone, or hold a whole
    step as well, backward and optimizer; 0 where the number is not seen, None where they do not go by rounds, or are off by default.

    A branch that empties the cache before it goes backward makes up for a step that failed.
    """
    every, loop = 1, call.loops[-1] if call.loops else None
    block = loop.stmt.body if loop is not None else call.function.body
    counters = None if loop is None else loop.assigned | _counted_by(loop.stmt)
    while call.stmt not in block and call.guarded:
        inner = next(((s, b) for s in block for b in s.blocks() if call.stmt in ir.statements(b)), None)
        if inner is None:
            return None
        statement, block = inner
        if isinstance(statement, ir.Try) and block is statement.final:
            return None
        if not isinstance(statement, ir.If) or is_availability(statement.test):
            continue
        if block is statement.body and _counts_rounds(statement.test, counters):
            rounds = rounds_between(call.function, statement.test)
            if rounds == 0:
                return None
            every *= rounds or 0
        elif is_periodic(statement.test) or not _trains(block, call.stmt):
            return None
    return every


def _counted_by(loop: ir.For | ir.While) -> set[str]:
    """What a loop binds to each of its rounds, or adds up in them."""
    counters = [one.target for one in ir.statements(loop.body) if isinstance(one, ir.AugAssign)]
    parts = [*ir.walk(loop.target), *counters] if isinstance(loop, ir.For) else counters
    return {part.path for part in parts if part.path is not None}


def _trains(block: list[ir.Stmt], until: ir.Stmt) -> bool:
    """Whether a block runs a backward before this statement, and an optimizer."""
    before = takewhile(lambda statement: statement is not until, ir.statements(block))
    goes_back = any(runs_backward(call.method) for statement in before for call in ir.own_calls(statement))
    return goes_back and any(call.method == "step" for _, call in ir.calls(block))


def rounds_between(function: ir.Function, test: ir.Expr) -> int | None:
    """How many rounds lie between two in which a condition holds that asks for a remainder: by a constant, a name bound once, a
    parameter's default, or a command line's; None where it asks for none, or the divisor is not seen."""
    divisors = [part.operands[1] for part in ir.walk(test) if isinstance(part, ir.Op) and part.op == "%"]
    known = [number for one in divisors if (number := number_of(function, one)) is not None]
    return min(known, default=None)


def number_of(function: ir.Function, expr: ir.Expr) -> int | None:
    """The whole number that an expression of a function is, as far as constants and defaults tell."""
    param = next((param for param in function.params if param.name == expr.path), None)
    given = expr if param is None else param.default
    number = None if given is None else Constructing().number(function, given)
    return number if isinstance(number, int) else None


def _counts_rounds(test: ir.Expr, changing: frozenset[str] | None) -> bool:
    """Whether a condition holds in every so many rounds and no others, but for few: it compares the remainder of something that is
    among what is `changing` from round to round, or of anything where that is None, and asks for nothing else that does."""
    if not isinstance(test, ir.Op):
        return False
    if test.op in ("and", "or"):
        periodic = next((one for one in test.operands if _counts_rounds(one, changing)), None)
        others = [one for one in test.operands if one is not periodic]
        if periodic is None:
            return False
        if test.op == "or":  # `or i + 1 == len(loader)`: once more
            return all(isinstance(one, ir.Op) and one.op == "==" for one in others)
        own = _paths(periodic)
        return not any(_paths(one) & (changing or frozenset()) - own for one in others)
    if test.op not in ("not", "=="):
        return False
    divided = [one.operands[0] for one in test.operands if isinstance(one, ir.Op) and one.op == "%"]
    return any(changing is None or _paths(one) & changing for one in divided)


def _paths(expr: ir.Expr) -> set[str]:
    return {part.path for part in ir.walk(expr) if part.path is not None}
