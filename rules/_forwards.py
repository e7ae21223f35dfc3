"""What rules ask of the forward of a network: whether it builds a graph, and whether a step of training runs beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Graph
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.effects import place_of
from gpulint.analysis.queries.grad_mode import GradMode
from gpulint.analysis.queries.networks.forwards import Forward, forward_of
from gpulint.analysis.queries.networks.module_mode import ModuleMode, module_mode
from gpulint.analysis.queries.networks.runs import Run, modes_within, ran_within
from gpulint.analysis.queries.networks.trained import frozen, of_unseen_package
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.raises import old_torch
from gpulint.analysis.queries.steps import steps_beside
from gpulint.analysis.queries.stores.on_device import gives_dense
from gpulint.analysis.syntax.nodes import arguments, dotted, keyword, last_name
from gpulint.answers import Answer, Question, left_open, minor, proven, refuted
from gpulint.rule import AddImport, Repair, Wrap

GRAD_MODES: Final = {
    "off": "grad is off",
    "open": "something around it may switch grad off",
    "mixed": "some of those who call it switch grad off",
}


def builds_graph(asked: Asked, run: Run, grad: GradMode) -> Iterator[Answer]:
    """What says that a run, where grad is in this mode, builds a graph, or that it builds none."""
    evaluator, by = asked.evaluator, grad.by if asked.is_here(run.where) else None
    if grad.mode in ("open", "off"):
        verdict = left_open if grad.mode == "open" else refuted
        yield verdict(Question.GRAD, GRAD_MODES[grad.mode], by)
    wanted = outcome(evaluator, run.inner, run.where).wanted  # else it is switched on for a backward
    if isinstance(grad.by, ast.Call) and last_name(grad.by.func) == "enable_grad" and not wanted:
        yield refuted(Question.MEANT, "grad is switched on for it")
    if grad.mode == "on":
        begins = "" if grad.by is not None else f" where `{run.frame.function.name}` begins"
        yield proven(Question.GRAD, f"grad is on{begins}")
    if evaluator.is_dead(run.call, run.frame):
        yield refuted(Question.REACHED, "what is asked before it never holds")
    value = evaluator.value_of(run.inner, run.where)
    within = modes_within(evaluator, run)
    if within == {"off"}:
        yield refuted(Question.GRAD, "the network switches grad off itself")
    seen = value.kind in ("tensor", "array", "number", "text", "none") and value.graph is Graph.NONE
    if seen and "on" not in within:
        yield refuted(Question.GRAPH, "it makes no graph")
    if _frozen_at(evaluator, run.named, run.where) is not None or _is_frozen_within(evaluator, run):
        yield refuted(Question.GRAPH, "the network is frozen")
    given = {evaluator.value_of(one, run.where).kind for one in arguments(run.inner)}
    if given <= {"text", "number", "none"} and of_unseen_package(evaluator, run.network):
        yield refuted(Question.TENSOR, "it is given no tensor")
    if within != {"on"} and _is_unseen_method(evaluator, run):
        name = dotted(run.inner.func) or "the method"
        yield left_open(Question.GRAD, f"`{name}` is not seen, and may switch grad off itself")


_MAY_BE_OLD: Final = (
    "the project speaks of `volatile`, and a torch in which that does something has no `no_grad`"
)


def of_old_torch(asked: Asked) -> Iterator[Answer]:
    """That a torch without `no_grad` may run the file: a doubt where the project may make something `volatile`; else grad is on in any,
    and there is nothing to mend it with."""
    old = old_torch(asked.evaluator, asked.file)
    if old is not None:
        yield old if _makes_volatile(asked) else minor(old.question, old.clause, old.at)


def doubt_of_old(asked: Asked) -> str:
    """Why a torch without `no_grad` may run a project of which nothing says so, in one clause; empty where nothing speaks for it."""
    return _MAY_BE_OLD if _makes_volatile(asked) else ""


def _makes_volatile(asked: Asked) -> bool:
    """Whether the project makes something `volatile`, as one does that was written for a torch before 0.4."""
    files = asked.program.searched("volatile", asked.file)
    named = (getattr(node, "arg", getattr(node, "attr", "")) for one in files for node in ast.walk(one.tree))
    return "volatile" in named


def _frozen_at(evaluator: Evaluator, node: Any, frame: Frame) -> Any:
    """What freezes the network that an expression gives: a part is frozen where the whole is."""
    place = place_of(evaluator, node, frame)
    found = frozen(evaluator, place.value, place) if place.value.kind == "module" else None
    if found is None and isinstance(node, ast.Attribute):
        return _frozen_at(evaluator, node.value, frame)
    return found


def _is_frozen_within(evaluator: Evaluator, run: Run) -> bool:
    """Whether all that a network of the project runs of itself is frozen by then, or runs with grad off."""
    several = list(ran_within(evaluator, run))
    on = (one for is_off, one in several if not is_off)
    by = (_frozen_at(evaluator, one.expression, one.frame) if one is not None else None for one in on)
    return bool(several) and all(one is not None for one in by)


def _is_unseen_method(evaluator: Evaluator, run: Run) -> bool:
    """Whether it is a method by a name of its own, of a network of which nothing is known, that runs it."""
    is_method = bool(run.method) and evaluator.table.own("module", run.method) is None
    return is_method and run.network.ref is None and evaluator.calling.made_by(run.network) is None


def in_eval_mode(asked: Asked, calls: Iterable[tuple[Any, Frame]]) -> bool:
    """Whether a network behind what some calls made is in eval mode."""
    runs = (forward_of(asked.evaluator, node, frame) for node, frame in calls)
    known = (one for one in runs if one is not None)
    return any(module_mode(asked.evaluator, one.expression, one.frame).mode == "eval" for one in known)


def under_no_grad(asked: Asked, doubt: str, what: str, *statements: Any) -> Repair | None:
    """The repair that puts statements under `no_grad`, each for itself; None where it has no name there."""
    from gpulint.fix.nodes import no_grad_with

    doubt = doubt or doubt_of_old(asked)
    name, missing = asked.torch_name("no_grad", statements[0])
    changes = (Wrap((asked.line(one),), no_grad_with(name)) for one in statements)
    imports = [AddImport(missing)] if missing else []
    return Repair.unless(doubt, what.format(name), (*changes, *imports)) if name else None


def scores_words(evaluator: Evaluator, forward: Forward) -> bool:
    """Whether a network is known to score many things at each position, by its class or by the labels that it is given."""
    return gives_dense(evaluator, forward.network, many=True) or labels_positions(forward.call)


def labels_positions(call: ast.Call) -> bool:
    """Whether the network works out a loss of each position: it is given its own input as labels, or labels beside what a decoder reads."""
    labels = keyword(call, "labels")
    others = [*call.args, *(one.value for one in call.keywords if one.value is not labels)]
    decodes = any(str(one.arg).startswith("decoder_") for one in call.keywords)
    return labels is not None and (decodes or ast.unparse(labels) in map(ast.unparse, others))


def trains_beside(asked: Asked, run: Run, mode: ModuleMode) -> bool:
    """Whether a step of training runs in the innermost loop around a forward, or beside it where none is, and nothing ends it in
    between by putting the network into eval mode."""
    flow, loops = run.frame.flow, run.frame.flow.loops(run.call)
    beside = steps_beside(asked.steps, run.frame.function, run.call)
    if mode.mode == "eval" and all(one.within and one.gathers for one in beside):
        return False  # an attack goes backward in rounds of its own
    if not beside or mode.mode != "eval" or mode.by not in flow.parents:
        return bool(beside)
    at = flow.order[flow.statement_of(mode.by)]
    inside = not loops or loops[0] in flow.loops(mode.by)
    return not (inside and all(flow.order[flow.statement_of(one.node)] < at for one in beside))
