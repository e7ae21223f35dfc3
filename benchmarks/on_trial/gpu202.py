"""GPU202 as it would ask the engine: three queries for what four detectors remember.

Measured 2026-11-28 (`python benchmarks/engines.py --trial gpu202`): it tells 13 of the 14 findings that were judged true, but meets 68 and 49 %
of its cases' demands, so it did not move. What does not fit yet:

- Losses whose network is run in their own `forward`: who compares with what, and whether the parts are frozen, is not asked of a class.
- Networks of which nothing shows that they have weights, where only the gradient of an input is read.
- Optimizers whose parameters are gathered with `+=` or in a helper: what they have is out of sight, and nothing is told.
- What a `PackedSequence` calls `data` is taken for a cut.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gpulint.rules.gpu201_eval_with_grad import _GRAD, _builds_graph, _is_within, _trains_beside
from gpulint.rules.gpu202_frozen_forward_with_grad import FrozenForwardWithGrad
from gpulint.rules.gpu203_generator_not_detached import _stepped

from gpulint.analysis.domain.values import Graph, Value
from gpulint.analysis.evaluate.consumers import Use, goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.weights import weight
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.amounts import NARROW, TOY, _of_device, is_tried_out
from gpulint.analysis.queries.cover import cover
from gpulint.analysis.queries.effects import origins_of, place_of, uses_since_made
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.networks.module_mode import module_mode
from gpulint.analysis.queries.networks.runs import Run, is_of_module, runs
from gpulint.analysis.queries.networks.trained import (
    Update,
    frozen,
    made_at,
    of_unseen_package,
    optimizers_of,
    updates_after,
)
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.raises import old_torch, raises_before
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.syntax.nodes import argument, dotted
from gpulint.answers import (
    Answer,
    Question,
    confidence_of,
    left_open,
    proven,
    refuted,
    until_refuted,
    unweighed,
)
from gpulint.claims import Claim
from gpulint.rule import AddImport, Claimed, Cost, Repair, Report, Wrap

if TYPE_CHECKING:
    from gpulint.analysis.asked import Asked

_DEEPEST: Final = 3
_COST: Final = Cost(
    "every activation of this forward, at the step's peak",
    "3.63 instead of 3.22 GiB for a teacher as large as its student, 4-layer language models; H200, torch 2.11",
)
_COST_OF_GRADIENTS: Final = Cost(
    "gradients of all the weights, as large as the weights, held for the whole run, and computed in each step",
    "64 instead of 32 MiB after a step through 8 linear layers of width 1,024; H200, torch 2.11",
)
_SHAPE: Final = frozenset("shape size dim ndim dtype device".split())


class Asking(FrozenForwardWithGrad):
    """The rule, asking."""

    asks = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            told: set[Any] = set()  # networks that a backward goes through, each told once
            for run in runs(asked.evaluator, asked.root(function)):
                answers = until_refuted(_answers(asked, run))
                holds = confidence_of(answers) is not None
                through = holds and bool(outcome(asked.evaluator, run.inner, run.where).wanted)
                made = {node for node, _ in run.network.origins} if through else set()
                report = None if made & told else partial(_report, asked, run)
                told |= made
                yield Claimed(run.call, _named(run), answers, report)


def _answers(asked: Asked, run: Run) -> Iterator[Answer]:
    """On what the claim stands that a step builds a graph through a network that nobody uses, or gradients of its weights."""
    evaluator = asked.evaluator
    grad = grad_mode(evaluator, run.inner, run.where)
    yield from _builds_graph(asked, run, grad)
    if grad.mode == "mixed":
        yield left_open(Question.GRAD, _GRAD[grad.mode], grad.by)
    if is_tried_out(evaluator, run):
        yield refuted(Question.MEANT, "it is tried out on made-up input")
    yield from raises_before(evaluator, run.call, run.frame)
    what = outcome(evaluator, run.inner, run.where)
    if what.undetached is not None or what.by_choice is not None:
        yield refuted(Question.GRAPH, "what it gives has no graph, or who calls it chooses")
    place = place_of(evaluator, run.named, run.where)
    several = [run.network.but(origins=frozenset({one})) for one in origins_of(evaluator, run.network)]
    if len(several) > 1 and any(frozen(evaluator, one, place) is not None for one in several):
        yield left_open(Question.TRAINED, "some of those who make it freeze it")
    if what.wanted:
        yield from _of_weights(asked, run, what.wanted)
    else:
        yield from _of_result(asked, run)
    yield from (left_open(Question.TENSOR, one.clause) for one in run.network.assumptions)
    yield from _size(evaluator, run)
    yield from _of_device(evaluator, run)
    yield from reached(evaluator, run.frame.function, run.call)
    old = old_torch(evaluator, asked.file)
    if old is not None:
        yield old


def _of_result(asked: Asked, run: Run) -> Iterator[Answer]:
    """Whether it runs in a step of training, and nothing of what it gives goes on with its graph."""
    evaluator = asked.evaluator
    what = outcome(evaluator, run.inner, run.where)
    if not what.is_read_only or what.stored:
        yield refuted(Question.READS, "its result goes on with its graph, or where that is not seen")
    if is_of_module(evaluator, run.frame.function) and not all(
        _is_within(use.frame, run.frame) for use in what.read
    ):
        yield refuted(Question.REACHED, "it is told where the network is called")
    if not is_in_step(asked.steps, evaluator, run):
        yield refuted(Question.BACKWARD, "no step of training runs beside it")
    if what.read and all(use.name in _SHAPE for use in what.read):
        yield refuted(Question.READS, "nothing is read but its shape")
    mode = module_mode(evaluator, run.named, run.where)
    if mode.mode == "eval" and not _trains_beside(asked, run, mode):
        yield refuted(Question.MEANT, "it is an evaluation, which is told as such")
    yield proven(Question.BACKWARD, "no backward can go through what it gives")
    if not optimizers_of(evaluator, run.network):
        yield from _handed(evaluator, run)
    if not what.read:
        yield left_open(Question.READS, "nothing reads its result: it may run for what it leaves elsewhere")


def _of_weights(asked: Asked, run: Run, backwards: tuple[Use, ...]) -> Iterator[Answer]:
    """Whether a backward goes through it, and nobody trains it."""
    evaluator = asked.evaluator
    if is_of_module(evaluator, run.frame.function):
        yield refuted(Question.TRAINED, "it is part of what its network gives")
    if any(use.name.rpartition(".")[2] == "grad" for use in backwards):
        yield refuted(Question.BACKWARD, "it asks for gradients by name")
    several = [trained_by(evaluator, run.network, use) for use in backwards]
    if any(one.has_network for one in several):
        yield refuted(Question.TRAINED, "an optimizer has its weights")
    made = frozenset[Any]().union(*(one.made for one in several))
    if None in made or not (made or _gradient_is_read(evaluator, run)):
        yield refuted(Question.TRAINED, "what is stepped after this backward is not seen")
    origins = origins_of(evaluator, run.network)
    mode = module_mode(evaluator, run.named, run.where).mode
    annotated = bool(origins) and all(getattr(node, "annotation", None) is not None for node, _ in origins)
    if mode != "eval" and not annotated and not weight(evaluator, run.network).least:
        yield refuted(Question.TRAINED, "that it has weights is not seen, nor that it is put into eval mode")
    yield proven(Question.TRAINED, "no optimizer that is stepped after this backward has its weights")
    if not (origins and all(isinstance(node, ast.Call) for node, _ in origins)):
        yield left_open(Question.TRAINED, "what makes it is not seen: it may be frozen there")
        if not all(isinstance(node, ast.Call) for node in made):
            yield left_open(Question.TRAINED, "what makes that which is stepped is not seen")
    yield from _handed(evaluator, run)


def _handed(evaluator: Evaluator, run: Run) -> Iterator[Answer]:
    """Whether something that is not seen makes it or is given it, and may freeze it."""
    if any(
        evaluator.value_of(node.func, where).kind == "library"
        for node, where in run.network.origins
        if isinstance(node, ast.Call)
    ) and of_unseen_package(evaluator, run.network):
        yield refuted(Question.TRAINED, "what makes it is not seen: it may be frozen there")
    for origin in origins_of(evaluator, run.network):
        for use in uses_since_made(evaluator, origin):
            if use.role == "too much" or (use.role == "given" and not _is_torchs(evaluator, use)):
                yield refuted(Question.TRAINED, f"`{use.name}` is given it, and may freeze or train it")


def _is_torchs(evaluator: Evaluator, use: Use) -> bool:
    """Whether what is given a network is known not to keep it: a function of torch, or one of which the table says what it does."""
    if use.row is not None and use.row.does:
        return True
    target = evaluator.value_of(use.node.func, use.frame) if isinstance(use.node, ast.Call) else None
    return target is not None and isinstance(target.ref, str) and target.ref.startswith("torch.")


def _size(evaluator: Evaluator, run: Run) -> Iterator[Answer]:
    """Whether what one step saves is much: it lets go of it."""
    found = weight(evaluator, run.network)
    if found.whole and (not found.least or (found.least < TOY and not found.mixes)):
        yield refuted(Question.SIZE, "it has no weights to speak of")
    elif found.mixes or found.least >= NARROW:
        yield proven(Question.SIZE, "the network is large, or pictures or sequences go through it")
    elif found.whole or found.least:
        yield left_open(Question.SIZE, "nothing but a few linear layers is seen of it")
    else:
        yield unweighed(Question.SIZE, "how large the network is is not seen")


def _gradient_is_read(evaluator: Evaluator, run: Run) -> bool:
    """Whether the gradient of something that it is given is read: `step = image.grad`."""
    given = [one for one in run.inner.args if not isinstance(one, ast.Starred)]
    return any(
        use.name == "grad"
        for one in (*given, *(named.value for named in run.inner.keywords))
        for origin in evaluator.value_of(one, run.where).origins
        for use in uses_since_made(evaluator, origin)
    )


def _wants_input(asked: Asked, run: Run) -> bool:
    """Whether something that it is given wants a gradient."""
    given = (*run.inner.args, *(one.value for one in run.inner.keywords))
    return any(
        asked.evaluator.value_of(one, run.where).graph is not Graph.NONE
        for one in given
        if not isinstance(one, ast.Starred)
    )


def _named(run: Run) -> str:
    return dotted(run.named) or "the network"


def _report(asked: Asked, run: Run) -> Report:
    name, what = _named(run), outcome(asked.evaluator, run.inner, run.where)
    cost, claim = _COST, Claim("forward") if what.wanted else None
    if what.wanted and _wants_input(asked, run):
        cost, claim = _COST_OF_GRADIENTS, None
        message = f"backward goes through `{name}` to what it is given, and makes gradients of all its weights, which nobody steps"
        reason = f"each step computes them, and `.grad` holds them: `{name}.requires_grad_(False)`, once and before the loop, spares both"
    elif what.wanted:
        message = f"`{name}` runs with grad enabled in a training step, but no optimizer trains it"
        reason = "backward goes through it for gradients that nobody uses: what it is given has no graph"
    else:
        message = (
            f"`{name}` runs with grad enabled in a training step, but no backward goes through this call"
        )
        used = "is only detached or read as a number" if what.read else "is read by nobody"
        reason = f"the result of this call {used}: its activations are saved for nothing"
    return Report(
        run.call, message, reason, cost, repair=lambda: _repair(asked, run), subject=name, claim=claim
    )


def _repair(asked: Asked, run: Run) -> Repair | None:
    """The statement under `no_grad`, where nothing else in it could want a graph."""
    from gpulint.fix.nodes import no_grad_with

    what = outcome(asked.evaluator, run.inner, run.where)
    if (what.wanted and _wants_input(asked, run)) or old_torch(asked.evaluator, asked.file) is not None:
        return None
    chosen = cover(asked.evaluator, asked.steps, [run])
    if chosen is None or chosen.whole or len(chosen.statements) != 1:
        return None
    statement = chosen.statements[0]
    name, missing = asked.torch_name("no_grad")
    imports = (AddImport(missing),) if missing else ()
    change = Wrap((asked.line(statement),), no_grad_with(name))
    why = "an optimizer in another file may train it" if what.wanted else chosen.doubt
    return Repair.unless(why, f"run it under `{name}()`", (change, *imports))


def is_in_step(steps: Steps, evaluator: Evaluator, run: Run) -> bool:
    """Whether a run is made as often as a backward or an optimizer's step: in the innermost loop of one, in its function where no loop
    is around, or in a function that such a place calls."""
    return _is_beside(steps, evaluator, run.frame.function, run.call, _DEEPEST)


def _is_beside(steps: Steps, evaluator: Evaluator, function: Function, call: Any, depth: int) -> bool:
    loops = function.flow.loops(call)
    events = [one for one in steps.of(function) if one.work == "train" and one.node is not call]
    if any(loops[0] in one.loops if loops else not one.loops for one in events):
        return True
    if loops or not depth:
        return False
    sites = evaluator.callers(function)
    above = (_is_beside(steps, evaluator, one.frame.function, one.call, depth - 1) for one in sites)
    return any(above) or (not sites and goes_backward_by(evaluator, function))


@dataclass(frozen=True, slots=True)
class Trained:
    """What the step after a backward trains: the nodes where what the stepped optimizers have was made, `None` among them for what
    is not seen; and whether any optimizer has a network."""

    made: frozenset[Any]
    has_network: bool


def trained_by(evaluator: Evaluator, network: Value, backward: Use) -> Trained:
    """What is stepped between a backward and the next one, and whether a network is in it."""
    made: set[Any] = set()
    for one in _stepped(updates_after(evaluator, backward.node, backward.frame)):
        made |= _had(evaluator, one)
    nodes = frozenset(one and one[0] for one in made)
    has = bool(optimizers_of(evaluator, network)) or bool(made_at(evaluator, network) & nodes)
    within = any(
        _is_part(evaluator, part, whole) or _is_part(evaluator, whole, part)
        for part in origins_of(evaluator, network)
        for whole in made
        if whole is not None
    )
    return Trained(nodes, has or within)


def _is_part(evaluator: Evaluator, part: Any, whole: Any) -> bool:
    """Whether what is made at one place is made by the class of what is made at another, or within its very expression."""
    (node, where), (outer, frame) = part, whole
    if any(one is node for one in ast.walk(outer)):
        return True
    made = evaluator.value_of(outer, frame) if isinstance(outer, ast.Call) and frame is not None else None
    cls = where.function.cls if where is not None else None
    if made is None or cls is None or not isinstance(made.ref, Class):
        return False
    return cls in evaluator.program.lineage(made.ref)


def _had(evaluator: Evaluator, step: Update) -> set[Any]:
    """Where the tensors were made that an optimizer steps: origins, and `None` for what is not seen."""
    made: set[Any] = set() if step.origins else {None}
    for call, frame in step.origins:
        given = argument(call, 0, "params") if isinstance(call, ast.Call) else None
        known = given is not None and frame is not None
        made |= _tensors_in(evaluator, evaluator.value_of(given, frame), 3) if known else {None}
    return made


def _tensors_in(evaluator: Evaluator, value: Value, depth: int) -> set[Any]:
    if value.kind in ("parameters", "parameter", "tensor"):
        return set(origins_of(evaluator, value)) or {None}
    if value.kind == "dict" and value.parts:
        value = next((one for key, one in value.parts if key == "params"), value)
        return _tensors_in(evaluator, value, depth - 1) if depth else {None}
    if value.kind in ("list", "tuple", "dict") and depth:
        return _tensors_in(evaluator, evaluator.element(value), depth - 1)
    return {None}
