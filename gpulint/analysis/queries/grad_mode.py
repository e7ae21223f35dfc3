"""Whether grad is on at a place: what its own function says, and where it says nothing what the calls of the function say."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import CallSite, Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.project.scripts import console_scripts
from gpulint.analysis.queries.calls import entered_by
from gpulint.analysis.queries.networks.module_mode import module_mode
from gpulint.analysis.syntax.nodes import last_name

Mode = Literal["on", "off", "mixed", "open"]


@dataclass(frozen=True, slots=True)
class GradMode:
    """The mode, and the node that says so, in whichever file. `certain`: each call that decides is seen to be one of this function;
    `called`: a program, or who sets the mode, is seen to get there."""

    mode: Mode
    by: Any = None
    certain: bool = True
    called: bool = False


def grad_mode(evaluator: Evaluator, node: Any, frame: Frame) -> GradMode:
    """The grad mode where a node is evaluated."""
    own, by = evaluator.modes.own(node, frame)
    if own is not None:
        return GradMode(own, by, called=True)  # type: ignore[arg-type]
    if frame.caller is not None:
        return grad_mode(evaluator, frame.call, frame.caller)
    return _at_place(evaluator, node, frame) or GradMode("on")


def _at_place(evaluator: Evaluator, node: Any, frame: Frame) -> GradMode | None:
    """The mode at a place of which its own function says nothing: of the callers that get to it. None as below."""
    found, flow = _at_entry(evaluator, frame.function), frame.flow
    if found is None or not (asked := flow.conditions(flow.statement_of(node))):
        return found
    if found.mode == "on" and not found.called:  # who is not seen to evaluate a network may switch grad off
        tests = (test for test, wanted in asked if last_name(test) == "training" and not wanted)
        return next((GradMode("open", test) for test in tests), found)
    if found.mode != "mixed":
        return found
    root = evaluator.root(frame.function)
    work = lambda at, where: _of_calls(evaluator, _getting_to(evaluator, at[1], where.function)) or found  # noqa: E731
    return evaluator.once(root.memo, (grad_mode, node), root, work, least=None)  # type: ignore[no-any-return]


def _getting_to(evaluator: Evaluator, node: Any, function: Function) -> Iterator[CallSite]:
    """The calls of a function in which it gets to a node, in the mode of the network that the node asks for, where it asks for one."""
    asked = function.flow.conditions(function.flow.statement_of(node))
    modes = {"eval" if wanted else "train" for test, wanted in asked if last_name(test) == "training"}
    for site in evaluator.callers(function):
        inner = entered_by(evaluator, function, site.call, site.frame)
        if inner is None or not evaluator.is_dead(node, inner):
            mode = module_mode(evaluator, site.call.func, site.frame).mode if modes else "?"
            if mode not in modes:
                yield site


def grad_at_entry(evaluator: Evaluator, function: Function) -> GradMode:
    """The grad mode in which a function is called."""
    return _at_entry(evaluator, function) or GradMode("on")


def _at_entry(evaluator: Evaluator, function: Function) -> GradMode | None:
    """The same; None while nothing is known of those who call it but itself."""
    if function.is_module:
        return GradMode("on", called=True)
    root = evaluator.root(function)
    return evaluator.once(root.memo, grad_at_entry, root, partial(_worked_out, evaluator), least=None)  # type: ignore[no-any-return]


def _worked_out(evaluator: Evaluator, _: Any, frame: Frame) -> GradMode:
    function = frame.function
    if _is_run_without_grad(evaluator, function):
        return GradMode("off", function.node, called=True)
    is_script = function.qualname in console_scripts(evaluator.program.sources, function.file.path)
    found = _of_calls(evaluator, evaluator.callers(function), is_script)
    by = _switched_by_constructor(evaluator, function)
    if by is not None:
        return GradMode("off", by, called=found is not None)
    if found is None and function.parent is not None:
        return _where_handed_on(evaluator, function, function.parent)
    by = _switched_off_in(evaluator, function.file.body)  # whatever runs later runs without grad
    return found or (GradMode("on") if by is None else GradMode("off", by))


def _of_calls(evaluator: Evaluator, sites: Iterable[CallSite], is_script: bool = False) -> GradMode | None:
    """The mode of all of some calls, and of the command that a function may be; None where none is seen to say anything."""
    found, certain = [GradMode("on", called=True)] if is_script else [], True
    for site in sites:
        own, by = evaluator.modes.own(site.call, site.frame)
        certain = certain and site.certain
        if own is not None:
            found.append(GradMode(own, by, called=True))  # type: ignore[arg-type]
        elif (outer := _at_place(evaluator, site.call, site.frame)) is not None:
            found.append(outer)
    sure = certain and all(one.certain for one in found)
    if len({one.mode for one in found}) > 1:
        return GradMode("mixed", next(one.by for one in found if one.mode != "on"), sure, called=True)
    return GradMode(found[0].mode, found[0].by, sure, any(one.called for one in found)) if found else None


def _where_handed_on(evaluator: Evaluator, function: Function, around: Function) -> GradMode:
    """The mode of an inner function that nobody is seen to call: of where it is handed on to be called, as `solve_ivp(function)` does,
    else of the function around it."""
    for use in around.flow.uses.get(function.name, ()):
        own, by = evaluator.modes.own(use, evaluator.root(around))
        if own is not None and isinstance(around.flow.parents.get(use), (ast.Call, ast.keyword)):
            return GradMode(own, by, called=True)  # type: ignore[arg-type]
    return _at_entry(evaluator, around) or GradMode("on")


def _is_run_without_grad(evaluator: Evaluator, function: Function) -> bool:
    """Whether a framework calls the method, and switches grad off before."""
    if function.cls is None or function.parent is not None:
        return False
    bases = (one.split(".") for one in evaluator.program.lineage(function.cls) if isinstance(one, str))
    names = (name for one in bases for name in (one[-1], f"{one[0]}.{one[-1]}"))
    rows = (evaluator.table.own(f"hooks.{one}", function.name) for one in names)
    row = next(filter(None, rows), None)
    return row is not None and row.mode == "off"


def _switched_by_constructor(evaluator: Evaluator, function: Function) -> Any:
    """`torch.set_grad_enabled(False)` as a statement of the constructor, or of a method that the constructor calls: by the time that
    another method runs, it has been run."""
    init = evaluator.method(function.cls, "__init__") if function.takes_self else None
    if init is None or init is function:
        return None
    own = [one for one in init.flow.calls_on({init.self_name}, *init.flow.calls) if _is_alone(init, one)]
    methods = (evaluator.method(function.cls, last_name(one.func)) for one in own)
    several = (init, *(one for one in methods if one is not None))
    return next((by for one in several if (by := _switched_off_in(evaluator, one)) is not None), None)


def _switched_off_in(evaluator: Evaluator, function: Function) -> Any:
    """The last call of a function that sets grad for good, where it switches it off whatever happens."""
    calls = function.flow.calls.get("set_grad_enabled", ())
    last = calls[-1] if calls else None
    if last is None or not _is_alone(function, last):
        return None
    return last if evaluator.modes.of_context(last, evaluator.root(function)) == "off" else None


def _is_alone(function: Function, call: ast.Call) -> bool:
    """Whether a call is a statement of its function, under no condition."""
    flow = function.flow
    statement = flow.statement_of(call)
    return isinstance(statement, ast.Expr) and flow.blocks[statement].owner is function.node
