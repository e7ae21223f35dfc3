"""Inputs that are changed by their own gradient, round after round, and never cut from the rounds before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.facts import Carried, FunctionFacts
from gpulint.analysis.torch.names import KEEPS_GRAPH, NO_GRAD
from gpulint.analysis.values.values import Grad

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# These save their inputs for a backward, as differences and sums do not.
_SAVING = frozenset("minimum maximum min max clamp clip where".split())
_KEEPING = KEEPS_GRAPH | _SAVING
_ARITHMETIC = frozenset({"+", "-", "*", "/", "neg"})


def perturbed(file: FileAnalysis, facts: FunctionFacts) -> Iterator[Carried]:
    """`x.requires_grad_()`, `autograd.grad(loss, x)`, `x = clamp(x - step * grad)`: the gradient is asked for this round's
    `x` only, so nothing ever frees what led to it."""
    if (
        "requires_grad_" not in file.evidence[facts.function].called
        or facts.grad_at_entry is not Grad.ENABLED
    ):
        return
    for loop in (s for s in ir.statements(facts.function.body) if isinstance(s, (ir.For, ir.While))):
        for statement in loop.body:
            call = statement.value if isinstance(statement, ir.ExprStmt) else None
            if not isinstance(call, ir.Call) or call.method != "requires_grad_":
                continue
            owner = call.func.base if isinstance(call.func, ir.Attr) else None
            if isinstance(owner, ir.Name) and _is_never_cut(file, loop.body, owner.id):
                if any(_asks_gradient_of(file, other, owner.id) for _, other in ir.calls(loop.body)):
                    known = file.loops.get(id(loop))
                    yield Carried(facts.function, statement, call, owner.id, owner, known, perturbed=True)


def _asks_gradient_of(file: FileAnalysis, call: ir.Call, name: str) -> bool:
    if call.method != "grad" or file.names.qualify(call.func.path or "") != "torch.autograd.grad":
        return False
    given = call.argument(1, "inputs")
    items = given.items if isinstance(given, ir.Seq) else (given,)
    return call.keyword("create_graph") is None and any(
        item is not None and item.path == name for item in items
    )


def _is_never_cut(file: FileAnalysis, block: list[ir.Stmt], name: str) -> bool:
    """Whether each statement that binds the name makes it from itself, and one of them saves what it was."""
    sources: list[ir.Expr] = []
    for statement in ir.statements(block):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(
                isinstance(part, ir.Name) and part.id == name for t in statement.targets for part in _parts(t)
            ):
                sources.append(statement.value)
        if isinstance(statement, ir.With) and any(_is_no_grad(file, expr) for expr, _ in statement.items):
            return False
        if any(call.method == "detach_" for call in ir.own_calls(statement)):
            return False
    saves = any(
        isinstance(part, ir.Call) and part.method in _SAVING for source in sources for part in ir.walk(source)
    )
    return saves and all(_flows(source, name) for source in sources)


def _parts(target: ir.Expr) -> tuple[ir.Expr, ...]:
    return tuple(target.items) if isinstance(target, ir.Seq) else (target,)


def _is_no_grad(file: FileAnalysis, expr: ir.Expr) -> bool:
    path = expr.func.path if isinstance(expr, ir.Call) else expr.path
    return path is not None and file.names.qualify(path) in NO_GRAD


def _flows(expr: ir.Expr, name: str) -> bool:
    """Whether the graph of a name goes on in the expression."""
    if isinstance(expr, ir.Name):
        return expr.id == name
    if isinstance(expr, ir.Op):
        return expr.op in _ARITHMETIC and any(_flows(part, name) for part in expr.operands)
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in _KEEPING:
        return _flows(expr.func.base, name) or any(_flows(arg, name) for arg in expr.args)
    return False
