"""Where grad can be switched off for some runs of a function without touching anything else.

A decorator covers all that a function does, a `with` around a loop all that the loop does: both are for code in which nothing trains and
nothing unseen may. Else only the runs' own statements.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import UNKNOWN
from gpulint.analysis.evaluate.consumers import Use
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.calls import done_within, entered, run_by
from gpulint.analysis.queries.networks.runs import Run, runs
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.reached import handed_on, named_otherwise
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import LOOPS, arguments, called_on, last_name

_SIMPLE: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
_DIFFERENTIATES: Final = frozenset({"differentiates"})
_DEEPEST: Final = 4  # calls below one
_PLAIN_DECORATORS: Final = frozenset(
    "property staticmethod classmethod override final wraps lru_cache cache".split()
)


@dataclass(frozen=True, slots=True)
class Cover:
    """What to put under no_grad: the function (`whole`), a loop, or statements one by one. `doubt` says in one clause what may want grad
    all the same."""

    whole: bool
    statements: tuple[Any, ...] = ()
    doubt: str = ""


def cover(evaluator: Evaluator, steps: Steps, found: Sequence[Run], whole: bool = True) -> Cover | None:
    """The cover of some runs of one function, which may be the `whole` of it; None where a backward may run under it, or where no statement can be put under one."""
    frame = found[0].frame
    function, flow = frame.function, frame.flow
    trains = [one.node for one in steps.of(function) if one.work == "train"]
    doubt = next((why for one in found if (why := _wanted(evaluator, one))), "")
    if whole and not trains and not function.is_module and _may_be_decorated(evaluator, frame, found):
        if not _may_want_grad(evaluator, frame, function.node):
            return Cover(True, doubt=doubt)
    loops = [flow.loops(one.call) for one in found]
    shared = [one for one in loops[0] if isinstance(one, LOOPS) and all(one in several for several in loops)]
    for loop in reversed(shared):
        of_training = any(loop in flow.loops(node) for node in trains)
        if of_training or _suspends(loop) or _others(evaluator, frame, found, loop):
            continue
        if not _may_want_grad(evaluator, frame, loop):
            return Cover(False, (loop,), doubt)
    return _narrow(evaluator, frame, found, doubt)


def _narrow(evaluator: Evaluator, frame: Frame, found: Sequence[Run], doubt: str) -> Cover | None:
    flow = frame.flow
    statements = tuple(dict.fromkeys(flow.statement_of(one.call) for one in found))
    alone = all(isinstance(one, _SIMPLE) and not shares_rows(flow, one) for one in statements)
    if not alone or any(_suspends(one) or _others(evaluator, frame, found, one) for one in statements):
        return None
    if any(_differentiates(evaluator, frame, one) for one in statements):
        return None
    strange = next((why for one in statements if (why := _stranger(evaluator, frame, one))), "")
    return Cover(False, statements, f"`{strange}` is not seen, and may need grad" if strange else doubt)


def shares_rows(flow: Flow, statement: Any) -> bool:
    """Whether another statement of the block stands on a row of one."""
    rows = range(statement.lineno, statement.end_lineno + 1)
    beside = (one for one in flow.blocks[statement].statements if one is not statement)
    return any({one.lineno, one.end_lineno} & {*rows} for one in beside)


def _others(evaluator: Evaluator, frame: Frame, found: Sequence[Run], inside: Any) -> bool:
    """Whether anything else in a piece of code makes a graph that somebody wants, or is run for what it leaves elsewhere."""
    calls = set(ast.walk(inside)) - {one.call for one in found}
    others = [one for one in runs(evaluator, frame) if one.call in calls]
    what = [outcome(evaluator, one.inner, one.where) for one in others]
    return not all(one.is_read_only and (one.read or one.stored) for one in what)


def _wanted(evaluator: Evaluator, run: Run) -> str:
    """Who may go backward through what a run gives, in one clause."""
    what = outcome(evaluator, run.inner, run.where)
    function = run.frame.function
    if what.handed:
        return "what the network gives goes to code that is not seen, which may differentiate it"
    if any(_is_had_by_others(evaluator, one) for one in what.stored):
        return "what the network gives is stored where others may differentiate it"
    if what.returned:
        return f"`{function.name}` returns what the network gives, and a caller may differentiate it"
    if handed_on(evaluator, function):
        return f"`{function.name}` is handed to others, who may differentiate what it does"
    return ""


def _is_had_by_others(evaluator: Evaluator, use: Use) -> bool:
    """Whether what something is stored in is more than a local container, or an attribute of an object that is seen to be made: something
    of another object, a parameter, something of the module."""
    base, (own, dot, _) = use.name.partition("[")[0], use.name.partition(".")
    if dot:
        function = use.frame.function
        cls = function.cls if own == function.self_name else None
        return cls is None or not any(evaluator.made(cls))
    made = use.frame.flow.definitions.get(base, ())
    return not made or (use.frame.caller is None and any(one.kind == "parameter" for one in made))


def _may_want_grad(evaluator: Evaluator, frame: Frame, inside: Any) -> bool:
    """Whether something in a piece of code differentiates, or is not seen and may."""
    return _differentiates(evaluator, frame, inside) or bool(_stranger(evaluator, frame, inside))


def _differentiates(evaluator: Evaluator, frame: Frame, inside: Any) -> bool:
    """Whether a call in a piece of code differentiates, or runs what does."""
    calls = [one for one in ast.walk(inside) if isinstance(one, ast.Call) and one in frame.flow.parents]
    frames = (frame, *entered(evaluator, frame, 1))  # also what callers give it to call
    within = (each for where in frames for one in calls for each in run_by(evaluator, one, where))
    own = any(evaluator.does(one, frame) in _DIFFERENTIATES for one in calls)
    return own or any(done_within(evaluator, one, _DIFFERENTIATES, depth=_DEEPEST) for one in within)


def _stranger(evaluator: Evaluator, frame: Frame, inside: Any) -> str:
    """A call in a piece of code that is not seen, and is given a tensor, a network or an optimizer: it may go backward itself."""
    for call in ast.walk(inside):
        if not isinstance(call, ast.Call) or call not in frame.flow.parents:
            continue
        target = evaluator.value_of(call.func, frame)
        if target.kind in ("function", "class", "module", "object"):
            continue
        base = evaluator.value_of(on, frame) if (on := called_on(call)) is not None else UNKNOWN
        known = isinstance(target.ref, str) and evaluator.table.function(target.ref) is not None
        part = isinstance(base.ref, Class) and evaluator.table.own(base.kind, last_name(call.func)) is None
        if known or not (part or base.kind in ("unknown", "library", "object")):
            continue
        if any(_may_be_differentiated(evaluator, one, frame) for one in arguments(call)):
            return ast.unparse(call.func)
    return ""


def _may_be_differentiated(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether an argument is something that a backward may begin with or lead to."""
    value = evaluator.value_of(node, frame)
    if value.kind in ("list", "dict"):
        value = evaluator.element(value)
    return value.kind in ("tensor", "parameter", "module", "optimizer")


def _suspends(node: Any) -> bool:
    """Whether a function may be left in the middle of a piece of code, so that others run with grad off."""
    return any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in ast.walk(node))


def _may_be_decorated(evaluator: Evaluator, frame: Frame, found: Sequence[Run]) -> bool:
    function = frame.function
    node = function.node
    if not isinstance(node, ast.FunctionDef) or _suspends(node):
        return False
    if not function.decorators <= _PLAIN_DECORATORS or named_otherwise(evaluator, function):
        return False
    if _others(evaluator, frame, found, node) or _has_metaclass(evaluator, function.cls):
        return False
    return not _returns_given_graph(evaluator, frame)


def _has_metaclass(evaluator: Evaluator, cls: Class | None) -> bool:
    """Whether a metaclass of the project, or one that is not seen, makes a class: it may read the parameters of its methods."""
    lineage = evaluator.program.lineage(cls) if cls is not None else ()
    named = (each for one in lineage if isinstance(one, Class) for each in one.node.keywords)
    return any(one.arg == "metaclass" and last_name(one.value) != "ABCMeta" for one in named)


def _returns_given_graph(evaluator: Evaluator, frame: Frame) -> bool:
    """Whether something that is returned has the graph of what the function was given."""
    returned = [frame.flow.unaliased(one.value) for one in frame.flow.returns if one.value is not None]
    parts = (part for one in returned for part in (one.elts if isinstance(one, ast.Tuple) else (one,)))
    values = (evaluator.value_of(one, frame) for one in parts)
    with_graph = (one for one in values if one.kind in ("tensor", "unknown") and one.graph)
    return any(isinstance(node, ast.arg) for one in with_graph for node, _ in one.origins)
