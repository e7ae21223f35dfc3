"""Whether grad is on at a place: what its own function says, and where it says nothing what the calls of the function say."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function

_DEEPEST: Final = 6

Mode = Literal["on", "off", "mixed", "open"]


@dataclass(frozen=True, slots=True)
class GradMode:
    """The mode, and the node that says so, in whichever file. `certain`: each call that decides is seen to be one of this function;
    `called`: somebody is seen to call it."""

    mode: Mode
    by: Any = None
    certain: bool = True
    called: bool = False


def grad_mode(evaluator: Evaluator, node: Any, frame: Frame) -> GradMode:
    """The grad mode where a node is evaluated."""
    own, by = evaluator.modes.own(node, frame)
    if own is not None:
        return GradMode(own, by)  # type: ignore[arg-type]
    if frame.caller is not None:
        return grad_mode(evaluator, frame.call, frame.caller)
    return _at_entry(evaluator, frame.function, _DEEPEST, ())


def grad_at_entry(evaluator: Evaluator, function: Function) -> GradMode:
    """The grad mode in which a function is called."""
    return _at_entry(evaluator, function, _DEEPEST, ())


def _at_entry(evaluator: Evaluator, function: Function, depth: int, seen: tuple[Function, ...]) -> GradMode:
    if function.is_module or not depth or function in seen:
        return GradMode("on")
    if _is_run_without_grad(evaluator, function):
        return GradMode("off", function.node, called=True)
    found: list[GradMode] = []
    certain = True
    for site in evaluator.callers(function):
        own, by = evaluator.modes.own(site.call, site.frame)
        certain = certain and site.certain
        if own is not None:
            found.append(GradMode(own, by))  # type: ignore[arg-type]
        else:
            found.append(_at_entry(evaluator, site.frame.function, depth - 1, (*seen, function)))
    if not found and function.parent is not None:
        return _at_entry(evaluator, function.parent, depth - 1, (*seen, function))
    modes = {one.mode for one in found}
    if not modes:
        by = _switched_at_the_top(evaluator, function)
        return GradMode("on") if by is None else GradMode("off", by)
    sure = certain and all(one.certain for one in found)
    if len(modes) == 1:
        return GradMode(found[0].mode, found[0].by, sure, called=True)
    return GradMode("mixed", next(one.by for one in found if one.mode != "on"), sure, called=True)


def _is_run_without_grad(evaluator: Evaluator, function: Function) -> bool:
    """Whether a framework calls the method, and switches grad off before."""
    if function.cls is None or function.parent is not None:
        return False
    for base in evaluator.program.lineage(function.cls):
        if isinstance(base, str):
            row = evaluator.table.own(f"hooks.{base.rpartition('.')[2]}", function.name)
            if row is not None:
                return row.mode == "off"
    return False


def _switched_at_the_top(evaluator: Evaluator, function: Function) -> Any:
    """`torch.set_grad_enabled(False)` as a statement of the module: whatever runs later runs without grad."""
    flow = function.file.body.flow
    for call in flow.calls.get("set_grad_enabled", ()):
        statement = flow.statement_of(call)
        alone = isinstance(statement, ast.Expr) and flow.blocks[statement].owner is function.file.body.node
        if alone and evaluator.modes.of_context(call, evaluator.root(function.file.body)) == "off":
            return call
    return None
