"""What becomes of what `torch.load` returns: entries taken out, keys renamed, copied into a model or adopted as it is."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets

Chain = tuple[ir.Expr, ...]


def parents_of(statement: ir.Stmt) -> dict[int, ir.Expr]:
    """For each expression of a statement the one around it, by identity."""
    found: dict[int, ir.Expr] = {}
    for expr in ir.own_parts(statement):
        for child in expr.children():
            found[id(child)] = expr
    return found


def chain_of(expr: ir.Expr, parents: dict[int, ir.Expr]) -> Chain:
    """The expressions around an expression, innermost first."""
    found: list[ir.Expr] = []
    current = parents.get(id(expr))
    while current is not None:
        found.append(current)
        current = parents.get(id(current))
    return tuple(found)


def lives_through_loop(
    function: ir.Function, binding: ir.Stmt, name: str, trains: Callable[[ir.Call], bool]
) -> bool:
    """Whether the function trains or infers after the loading, in a loop of its own or by a call that `trains`, while the name
    still holds all of it.
    What a script binds at its top is there until it ends. What another branch binds anew, or a later one may, is not let go of.
    """
    after = False
    always = _blocks_around(function.body, binding)
    for statement in ir.statements(function.body):
        if statement is binding:
            after = True
        elif after:
            if isinstance(statement, (ir.For, ir.While)) and (steps(statement) or runs_loader(statement)):
                return True
            if any(map(trains, ir.own_calls(statement))):
                return True
            ended = statement.targets if isinstance(statement, ir.Delete) else _assigned(statement)
            if id(statement) in always and any(target.path == name for target in ended):
                return False
    return after and function.name == "<module>"


def _assigned(statement: ir.Stmt) -> list[ir.Expr]:
    return targets(statement) if isinstance(statement, ir.Assign) else []


def _blocks_around(body: list[ir.Stmt], wanted: ir.Stmt) -> set[int]:
    """The statements of the blocks that a statement stands in, and of what they go into with a `with` or `try`: who comes by
    it comes by those."""
    found: set[int] = set()
    for block in ir.every_block(body):
        if any(inner is wanted for inner in ir.statements(block)):
            found |= _reached_always(block)
    return found


def _reached_always(block: list[ir.Stmt]) -> set[int]:
    found = set(map(id, block))
    for statement in block:
        if isinstance(statement, (ir.With, ir.Try)):
            found |= _reached_always(statement.body)
    return found


def runs_loader(loop: ir.For | ir.While) -> bool:
    """Whether a loop goes through a loader: `for images, labels in test_loader:`."""
    return isinstance(loop, ir.For) and any("loader" in (part.path or "") for part in ir.walk(loop.iterable))


def steps(loop: ir.For | ir.While) -> bool:
    """Whether a loop trains, or calls what trains or evaluates: `loss.backward()`, `train_one_epoch(model, …)`."""
    return any(
        call.method in ("backward", "step")
        or re.search(r"train|eval|valid|infer|predict|generate", call.method)
        for _, call in ir.calls(loop.body)
    )


# --- where the file comes from -----------------------------------------------------------------------------------
