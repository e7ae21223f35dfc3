"""What goes through data only to print that it can: nothing of a round outlives it, and nothing is reckoned of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets

# What shows something to whoever looks on.
_SHOWS = frozenset("print pprint breakpoint set_trace exit quit".split())
# What is told of a tensor without its numbers.
_SHAPES = frozenset("shape size dtype device ndim dim numel len type keys format str".split())
# What reckons something, or keeps it.
_WORKS = re.compile(r"(?i)train|fit|step|update|evaluat|loss|criterion|metric|accura|save|write")
_MODES = frozenset({"train", "eval"})


def is_shown_only(block: list[ir.Stmt]) -> bool:
    """Whether the loops of a block do no more than print: texts, and shapes of what comes out. What a loop binds nothing after it
    reads; a call whose result nobody keeps shows something, or sets a network to a mode."""
    loops = [one for one in block if isinstance(one, (ir.For, ir.While))]
    return bool(loops) and all(_shows(loop, block) for loop in loops)


def modes_set(block: list[ir.Stmt]) -> Iterator[str]:
    """`train` and `eval`, where they only stand for the mode of something that the block calls as a network."""
    calls = [call for _, call in ir.calls(block)]
    called = {call.func.id for call in calls if isinstance(call.func, ir.Name)}
    for word in _MODES:
        named = [call for call in calls if call.method == word]
        if all(
            isinstance(call.func, ir.Attr) and call.func.base.path in called and not call.args
            for call in named
        ):
            yield word


def _shows(loop: ir.For | ir.While, block: list[ir.Stmt]) -> bool:
    inner = [*loop.body, *loop.orelse]
    after = block[block.index(loop) + 1 :]
    bound = {target.path for one in ir.statements(inner) for target in targets(one)}
    read = {part.path for one in _read_before_bound(after, bound) for part in one}
    heads = [one for one in ir.statements([loop]) if isinstance(one, ir.For)]
    rounds = {target.path for head in heads for target in targets(head)}
    works = any(call.method not in _MODES and _WORKS.search(call.method) for _, call in ir.calls(inner))
    return not works and bound.isdisjoint(read) and all(_is_idle(one, rounds) for one in ir.statements(inner))


def _read_before_bound(block: list[ir.Stmt], names: set[str | None]) -> Iterator[list[ir.Expr]]:
    """What statements read of some names until they bind them anew."""
    left = set(names)
    for statement in ir.statements(block):
        fresh = {id(target): target.path for target in targets(statement)}
        yield [part for part in ir.own_parts(statement) if part.path in left and id(part) not in fresh]
        left -= set(fresh.values())


def _is_idle(statement: ir.Stmt, rounds: set[str | None]) -> bool:
    """Whether a statement of a loop, whose heads bind `rounds`, leaves nothing behind it but what it prints."""
    if isinstance(statement, ir.ExprStmt):
        return _prints(statement.value, rounds)
    if isinstance(statement, ir.Assign):
        return all(isinstance(target, ir.Name) for target in targets(statement))
    return isinstance(statement, (ir.If, ir.For, ir.With, ir.Jump, ir.Import, ir.Delete))


def _prints(value: ir.Expr, rounds: set[str | None]) -> bool:
    """Whether an expression prints texts and shapes, sets a mode, or is nothing."""
    if isinstance(value, ir.Const):
        return True
    if not isinstance(value, ir.Call):
        return False
    if value.method in _MODES | {"to", "cuda"}:
        return True
    given = [*value.args, *(one for _, one in value.keywords)]
    return value.method in _SHOWS and all(_is_aside(one, rounds) for one in given)


def _is_aside(expr: ir.Expr, rounds: set[str | None]) -> bool:
    """Whether what is printed is a text, a count of rounds, or the shape of something; no number that was reckoned."""
    if isinstance(expr, ir.Name):
        return expr.id in rounds
    if isinstance(expr, ir.Attr):
        return expr.attr in _SHAPES
    if isinstance(expr, ir.Call):
        return expr.method in _SHAPES
    return all(_is_aside(one, rounds) for one in expr.children())
