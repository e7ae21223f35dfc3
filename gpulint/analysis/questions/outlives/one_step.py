"""Copies that are gone before the next step, and copies that are made after the last."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.torch.backward import runs_backward


def lives_one_step(function: ir.Function, made: ir.Stmt, name: str) -> bool:
    """Whether the loop that makes a copy deletes its name at the end of the same round."""
    loops = ir.loops_around(function.body, made)
    if not loops or not name.isidentifier():
        return False
    after = False
    for statement in ir.statements(loops[-1].body):
        after |= statement is made
        if after and isinstance(statement, ir.Delete) and any(t.path == name for t in statement.targets):
            return True
    return False


def made_at_the_end(function: ir.Function, made: ir.Stmt) -> bool:
    """Whether a copy is made in no loop, after one that trains, with no loop after it."""
    if ir.loops_around(function.body, made):
        return False
    before = trains = False
    for statement in ir.statements(function.body):
        if statement is made:
            before = True
        elif isinstance(statement, (ir.For, ir.While)):
            if before:
                return False
            trains |= any(
                runs_backward(call.method) or "train" in call.method.lower() or call.method == "step"
                for _, call in ir.calls(statement.body)
            )
    return trains
