"""Averages of weights: EMA, target networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.averages.graphs import keeps_graph
from gpulint.rules.detect.averages.recording import recording
from gpulint.rules.detect.averages.updates import Average, same, summands, updates

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import passes_graph_by
from gpulint.analysis.questions.grad.frozen_networks import made_without_grad

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

PARAMETERS = frozenset({"parameters", "named_parameters"})


def of_weights(file: FileAnalysis, function: ir.Function) -> Iterator[Average]:
    for statement in recording(file, function, function.body, True):
        if not isinstance(statement, ir.For):
            continue
        weights = _parameter_names(statement)
        if not weights:
            continue
        inner = set(map(id, recording(file, function, statement.body, True)))
        outer = set(map(id, recording(file, function, function.body, True)))
        for update in ir.statements(statement.body):
            if id(update) in inner & outer:
                for target, value in updates(update):
                    if _is_cut_before(statement.body, target):
                        continue
                    leaves = tuple(part for part in summands(value) if keeps_graph(part, weights))
                    if leaves and not passes_graph_by(target) and not _is_own(target, leaves):
                        found = Average(function, update, target, _names_in(leaves, weights), "weights")
                        found.doubt = _frozen_doubt(function, statement)
                        yield found


def _frozen_doubt(function: ir.Function, loop: ir.For) -> str:
    """What speaks for it that no parameter that the loop goes through requires grad there."""
    networks = {
        part.func.base.path
        for part in ir.walk(loop.iterable)
        if isinstance(part, ir.Call) and part.method in PARAMETERS and isinstance(part.func, ir.Attr)
    }
    frozen = networks and all(path is not None and made_without_grad(function, path) for path in networks)
    return f"`{min(map(str, networks))}` is made without grad, and may be so again here" if frozen else ""


def _parameter_names(loop: ir.For) -> set[str]:
    """The loop's names for parameters: `p` in `for name, p in model.named_parameters()`, both of a `zip`."""
    found: set[str] = set()
    stack: list[tuple[ir.Expr, ir.Expr]] = [(loop.target, loop.iterable)]
    while stack:
        target, iterable = stack.pop()
        if not isinstance(iterable, ir.Call):
            continue
        if iterable.method == "enumerate" and isinstance(target, ir.Seq) and len(target.items) == 2:
            stack.append((target.items[1], iterable.args[0]))
        elif (
            iterable.method == "zip"
            and isinstance(target, ir.Seq)
            and len(target.items) == len(iterable.args)
        ):
            stack += zip(target.items, iterable.args, strict=True)
        elif iterable.method in PARAMETERS and isinstance(iterable.func, ir.Attr):
            if (
                iterable.method == "named_parameters"
                and isinstance(target, ir.Seq)
                and len(target.items) == 2
            ):
                target = target.items[1]
            if isinstance(target, ir.Name):
                found.add(target.id)
    return found


def _names_in(leaves: tuple[ir.Expr, ...], graphs: set[str]) -> tuple[ir.Expr, ...]:
    """The names themselves within the leaves: what a fix detaches."""
    return tuple(
        part for leaf in leaves for part in ir.walk(leaf) if isinstance(part, ir.Name) and part.id in graphs
    )


def _is_own(target: ir.Expr, leaves: tuple[ir.Expr, ...]) -> bool:
    """Whether only the target itself, a parameter of the loop, is what has a graph."""
    return all(same(leaf, target) for leaf in leaves)


def _is_cut_before(body: list[ir.Stmt], target: ir.Expr) -> bool:
    """`target.detach_()`, `target.requires_grad_(False)` in the same round: there is one link of the chain at most."""
    return any(
        isinstance(call.func, ir.Attr)
        and call.method in ("detach_", "requires_grad_")
        and same(call.func.base, target)
        for _, call in ir.calls(body)
    )
