from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from gpulint.rules._forwards import (
    GRAD_MODES,
    builds_graph,
    doubt_of_old,
    of_old_torch,
    trains_beside,
    under_no_grad,
)

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.evaluate.weights import weight
from gpulint.analysis.project.file import Function
from gpulint.analysis.project.requirements import torch_of
from gpulint.analysis.queries.amounts import amounts, is_tried_out, through_batches
from gpulint.analysis.queries.calls import done_within, run_by
from gpulint.analysis.queries.cover import cover
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.graphs.backwards import backwards
from gpulint.analysis.queries.networks.module_mode import ModuleMode, module_mode
from gpulint.analysis.queries.networks.runs import Run, entered, is_of_module, runs, runs_of
from gpulint.analysis.queries.outcome import Outcome, Phase, outcome, phase_of
from gpulint.analysis.queries.raises import old_torch, raises
from gpulint.analysis.queries.reached import reached, unseen_base
from gpulint.analysis.queries.steps import is_in_step, steps_beside
from gpulint.analysis.syntax.flow import Flow, are_exclusive
from gpulint.analysis.syntax.nodes import LOOPS, dotted
from gpulint.answers import (
    NO_FURTHER,
    Answer,
    Question,
    confidence_of,
    doubts_of,
    least_open,
    left_open,
    proven,
    refuted,
    until_refuted,
)
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import AddImport, Claimed, Cost, Decorate, RelatedNode, Repair, Report, Rule


class EvalWithGrad(Rule):
    """
    ## What it does
    Finds evaluation and inference whose forward runs with grad enabled although nothing ever calls backward.

    Told in doubt where the text around it speaks for it: only its name says that a network runs, or its method is not seen,
    `model.evaluation_step(x)`, and may switch grad off by itself; only a text chooses the phase, `to_do == "train"`; some of
    those who call the function switch grad off, or its class derives from one that is not seen; the result goes to code that
    is not seen, or nobody reads it; nothing puts the network on a GPU.

    It is a warning where something shows that the forward saves much: pictures go through convolutions, batches go
    through it, or the network is known to be large. It is a note where nothing shows that, or where it is little: a network of next to
    no weights, a loop that ends with its first round or has a handful, a forward that no loop is seen to run, a function that nothing in
    the program calls.

    ## Why is this bad
    With grad enabled the forward saves every activation for a backward that never comes. `model.eval()` changes
    dropout and batch norm, not this. That holds as well beside the training, for a look at the held-out data after the
    optimizer's step, and for the forward that scores what an attack has made: the attack needs the gradient of its input, the score does not.

    ## What it costs
    A forward of a 4-layer language model peaks at 1.56 GiB with grad and at 1.15 GiB under `no_grad`: 1.36 times. It takes
    6.73 instead of 6.24 ms; `inference_mode` does no better than `no_grad`. If outputs or losses are kept as well, 925 MiB of
    activations stay with each batch (GPU101; NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch

    def accuracy(model: torch.nn.Module, loader):
        model.eval()
        correct = 0
        for inputs, targets in loader:
            outputs = model(inputs)
            correct += (outputs.argmax(1) == targets).sum().item()
        return correct / len(loader.dataset)
    ```

    ## Use instead
    ```python
    import torch

    @torch.no_grad()
    def accuracy(model: torch.nn.Module, loader):
        model.eval()
        correct = 0
        for inputs, targets in loader:
            outputs = model(inputs)
            correct += (outputs.argmax(1) == targets).sum().item()
        return correct / len(loader.dataset)
    ```

    ## Fix safety
    Decorating a function in which nothing needs grad, or putting the evaluating loop under `with torch.no_grad():`,
    changes no result: safe. Where the function gives tensors or networks to code that is not seen, only the statements of
    the forwards are put under it; where its parameters or its code are read, or a metaclass makes its class, it is not
    decorated. Unsafe where unseen code is called in the very statement, gets the outputs, or is a caller who gets them,
    where they are stored in an attribute, where the function is handed to others, and where the claim itself is in doubt.
    Nothing is offered where a backward goes through the same forward in another phase, where a step of training stands in
    what would be covered, nor in a file written for a torch that has no `no_grad` yet.
    """

    code = "GPU201"
    name = "eval-with-grad"
    severity = Severity.WARNING
    runtime_claim = Claim("forward", unvisited=True)
    doubts = True
    triggers = (
        (b"torch", b"lightning", b"transformers", b"backward", b"cuda", b".eval()"),
        tuple(
            b".eval() .train(False) argmax detach item() tolist() float( numpy() backward .data torch.load( register_forward_hook".split()
        ),
    )

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in asked.file.parts:
            several = runs(asked.evaluator, asked.root(function))
            if not _may_evaluate(asked, function):
                several = tuple(one for one in several if not _is_of_own(one, function))
            found = [(run, until_refuted(_answers(asked, run))) for run in several]
            told = [one for one in found if confidence_of(one[1]) is not None]
            first = min(told, key=lambda one: least_open(one[1]), default=None)
            for one in found:  # one report a function: of what is least in doubt
                run, answers = one
                report = partial(_report, asked, run, answers, told) if one is first else None
                yield Claimed(run.call, _named(asked, run), answers, report, (run.inner, run.where))


def _may_evaluate(asked: Asked, function: Function) -> bool:
    """Whether more than a part of a network may run in a function: what a module runs within itself serves whoever calls it."""
    if not is_of_module(asked.evaluator, function):
        return True
    if function.name in _FORWARDS:
        return False
    loops = any(isinstance(one.owner, LOOPS) for one in function.flow.blocks.values())
    return loops or bool(function.flow.calls.get("eval")) or _is_called_in_loops(asked, function)


def _is_of_own(run: Run, function: Function) -> bool:
    """Whether what runs is a part of the network whose method runs it, or may be."""
    names = (one.id for one in ast.walk(run.named) if isinstance(one, ast.Name))
    return function.name in _FORWARDS or not run.is_direct or function.self_name in names


def _is_called_in_loops(asked: Asked, function: Function) -> bool:
    sites = asked.evaluator.callers(function)
    return any(one.frame.flow.loops(one.call) for one in sites if one.frame.function.name not in _FORWARDS)


_FORWARDS = ("forward", "__call__")
_SHAPE = frozenset("shape size dim ndim dtype device len numel".split())
_DEEPEST = 4  # calls within a run
_UNSEEN_READER = "its result goes to code that is not seen, which may want its gradient"


def _answers(asked: Asked, run: Run) -> Iterator[Answer]:
    """On what the claim stands that a forward needs no grad."""
    evaluator = asked.evaluator
    flow = run.frame.flow
    grad = grad_mode(evaluator, run.inner, run.where)
    yield from builds_graph(asked, run, grad)
    ways = ((run.frame.flow, run.call), (run.where.flow, run.inner))
    if any(_is_left_out(flow, guard, call) for flow, call in ways for guard in flow.calls.get("no_grad", ())):
        yield refuted(Question.MEANT, "a `no_grad()` that switches nothing off stands before it, and is told")
    if run.frame.function.is_module and not flow.loops(run.call):
        yield refuted(Question.MEANT, "a script tries its network out")
    if is_tried_out(evaluator, run):
        yield refuted(Question.MEANT, "it is tried out on made-up input")
    yield from raises(evaluator, run.call, run.frame)
    if any(block.arm.startswith("handler") for block in flow.around(run.call)):
        yield refuted(Question.MEANT, "this is what is done where something else has failed")
    what = outcome(evaluator, run.inner, run.where)
    if what.undetached is not None:
        clause = (
            "it becomes an array undetached, so grad is off where that is not seen, or the network cuts it"
        )
        is_on = grad.mode == "on" and grad.called and not run.network.others and entered(evaluator, run)
        is_cut = any(_is_other_way(one, what.undetached) for one in what.read)
        is_shown = not (is_on or is_cut) and _is_near(evaluator, run, what.undetached)
        verdict = refuted if is_shown else left_open
        yield verdict(Question.GRAPH, clause)
    phase = _phase(asked, run, what)
    if what.wanted and phase is None:
        at = what.wanted[0].node if asked.is_here(what.wanted[0].frame) else None
        yield refuted(Question.BACKWARD, "a backward goes through its graph", at)
    if phase is not None and phase.frame is not None:
        if grad_mode(evaluator, run.call, phase.frame).mode != "on":
            yield refuted(Question.GRAD, "grad is off in the phase that does not train", phase.by)
    if _differentiates(evaluator, run, phase.frame if phase is not None and phase.frame else run.where):
        yield refuted(Question.BACKWARD, "what it runs differentiates within itself, and needs grad for that")
    if what.by_choice is not None:
        clause = "it is cut under a condition: who calls it chooses"
        yield refuted(Question.MEANT, clause, what.by_choice.node)
    if not run.is_direct and _is_told_below(asked, run):
        yield refuted(Question.REACHED, "it is told where the network is called")
    if any(use.role == "too much" for use in what.unseen):
        yield left_open(Question.READS, NO_FURTHER)
    yield from _wanted(asked, run, what, phase)
    if not what.wanted and what.is_read_only:
        yield proven(Question.BACKWARD, "no backward can go through what it gives")
    if grad.mode == "on" and not grad.called:
        if is_of_module(evaluator, run.frame.function):
            yield left_open(Question.GRAD, "who runs the network is not seen, and may switch grad off")
        elif base := unseen_base(evaluator, run.frame.function):
            clause = f"`{base}` is not seen, and may call `{run.frame.function.name}` with grad off"
            yield left_open(Question.GRAD, clause)
    if grad.mode == "mixed" and (phase is None or phase.frame is None):
        here = all(use.frame is run.frame for use in (*what.read, *what.unseen, *what.returned))
        yield (left_open if here else refuted)(Question.GRAD, GRAD_MODES[grad.mode], grad.by)
    yield from (left_open(Question.TENSOR, one.clause) for one in run.network.assumptions)
    yield from amounts(evaluator, run)
    yield from reached(evaluator, run.frame.function)
    yield from of_old_torch(asked)


def _phase(asked: Asked, run: Run, what: Outcome) -> Phase | None:
    """The phase in which no backward goes through what runs; where none is seen to, one that some call chooses, without the steps beside."""
    if not run.is_direct:
        return None
    if what.wanted:
        return phase_of(asked.evaluator, run, [(use.node, use.frame) for use in what.wanted])
    if not trains_beside(asked, run, module_mode(asked.evaluator, run.named, run.where)):
        return None
    beside = [(one.node, run.frame) for one in steps_beside(asked.steps, run.frame.function, run.call)]
    phase = phase_of(asked.evaluator, run, beside)
    return phase if phase is not None and phase.by is None else None


def _differentiates(evaluator: Evaluator, run: Run, frame: Frame) -> bool:
    """Whether what a run runs goes backward within itself, where the calls that its function is of get to it."""
    inner = entered(evaluator, replace(run, where=frame)) if run.is_direct else None
    if inner is None:
        several = run_by(evaluator, run.call, run.frame)
    else:
        calls = [one for one in inner.flow.every_call if not evaluator.is_dead(one, inner)]
        own = [one.call for one in backwards(evaluator, inner.function)]
        if any(one in own or evaluator.does(one, inner) == "differentiates" for one in calls):
            return True
        several = [each for one in calls for each in run_by(evaluator, one, inner)]
    does = {"differentiates"}
    within = (done_within(evaluator, one, does, depth=_DEEPEST) for one in several)
    return any(next(backwards(evaluator, one), None) for one in several) or any(within)


def _is_other_way(cut: Use, use: Use) -> bool:
    """Whether a cut and a use stand in two arms of one `if`: then the use says nothing of what goes the other way."""
    flow = cut.frame.flow
    shared = cut.role == "cuts" and use.frame.flow is flow
    return shared and are_exclusive(list(flow.around(cut.node)), list(flow.around(use.node)))


def _is_near(evaluator: Evaluator, run: Run, use: Use) -> bool:
    """Whether what a run gives gets to a use for certain: in its own function, one that it calls, or those that are seen to call it."""
    if use.frame.function is run.frame.function or use.frame.caller is run.frame:
        return True
    sites = evaluator.callers(run.frame.function)
    return all(one.certain for one in sites) and use.frame.function in {one.frame.function for one in sites}


def _is_left_out(flow: Flow, guard: ast.Call, call: ast.Call) -> bool:
    """Whether a guard is made before a call, in a block around it, and not entered."""
    statement, own = flow.statement_of(guard), flow.statement_of(call)
    is_bare = isinstance(statement, ast.Expr) and statement.value is guard
    return is_bare and flow.order[statement] < flow.order[own] and flow.blocks[statement] in flow.around(own)


def _is_told_below(asked: Asked, run: Run) -> bool:
    """Whether a function on the way to the network is told of all its calls at once."""
    below = takewhile(lambda one: one[0] is not run.call, run.where.leading_to(run.inner))
    return any(_is_told(asked, node, frame) for node, frame in below)


def _is_told(asked: Asked, call: Any, frame: Frame) -> bool:
    """Whether a call is told in its function, whoever calls that."""
    root = asked.root(frame.function)
    several = (until_refuted(_answers(asked, one)) for one in runs_of(asked.evaluator, call, root))
    told = lambda: any(confidence_of(answers) is not None for answers in several)  # noqa: E731
    return settled(asked.evaluator, root, ("told", call), told)  # type: ignore[no-any-return]


def _wanted(asked: Asked, run: Run, what: Outcome, phase: Phase | None) -> Iterator[Answer]:
    """Whether an evaluation is seen, and nothing of what it gives goes on with its graph."""
    evaluator = asked.evaluator
    loops = run.frame.flow.loops(run.call)
    mode = module_mode(evaluator, run.named, run.where)
    part = is_of_module(evaluator, run.frame.function)
    if phase is not None:
        if phase.frame is None and evaluator.callers(run.frame.function):
            clause = "a backward goes through it in each phase that is seen"
            yield refuted(Question.BACKWARD, clause, phase.by)
        if phase.frame is None:
            clause = f"only `{ast.unparse(phase.by)}` says that a phase does not train"
            yield left_open(Question.REACHED, clause, phase.by)
        elif outcome(evaluator, run.inner, phase.frame).unseen:
            yield left_open(Question.READS, _UNSEEN_READER)
        return
    inside = all(run.holds(use.frame) for use in (*what.read, *what.unseen, *what.returned))
    if part and not (what.is_read_only and inside):
        yield refuted(Question.REACHED, "it is part of what its network gives")
    is_tried = part and mode.mode != "eval"  # told as part of a step
    if trains_beside(asked, run, mode) or (is_tried and is_in_step(asked.steps, evaluator, run)):
        yield refuted(Question.BACKWARD, "a backward or an optimizer runs beside it")
    if mode.mode == "eval":
        if not what.is_read_only and not loops and not _goes_out_here(run, mode, what):
            yield refuted(Question.READS, "it runs once, and its result goes on as a tensor")
        if what.unseen or not (what.is_read_only or loops):
            yield left_open(Question.READS, _UNSEEN_READER)
        return
    if not what.is_read_only:
        yield refuted(Question.READS, "its result is used as a tensor, and the network is not in eval mode")
    if all(use.name in _SHAPE for use in what.read):
        used = part or any(consumers(evaluator, run.inner, run.where, "graph"))
        clause = "nothing reads its result, or no more than its shape"
        yield (refuted if used else left_open)(Question.READS, clause)
    found = weight(evaluator, run.network)
    if found.whole and not found.least:
        yield refuted(Question.GRAPH, "as far as it can be seen, it has no weights")
    if run.network.assumptions and not through_batches(evaluator, run):
        yield refuted(Question.TENSOR, "nothing but its name shows that a network runs here")


def _goes_out_here(run: Run, mode: ModuleMode, what: Outcome) -> bool:
    """Whether the function that evaluates hands its result to what is not seen, by itself."""
    here = all(use.frame is run.frame for use in (*what.unseen, *what.returned))
    return here and mode.by in run.frame.flow.parents


def _report(
    asked: Asked, run: Run, answers: tuple[Answer, ...], told: list[tuple[Run, tuple[Answer, ...]]]
) -> Report:
    own = doubts_of(answers)
    alike = [one for one, others in told if doubts_of(others) == own]
    others = {one.call: doubts_of(each) for one, each in told if one.call is not run.call}
    said = ("and so does this" if one == own else f"so may this: {'; '.join(one)}" for one in others.values())
    mode = module_mode(asked.evaluator, run.named, run.where)
    what = outcome(asked.evaluator, run.inner, run.where)
    phase = _phase(asked, run, what)
    evaluates = (mode.mode == "eval" and not mode.may_be_later) or phase is not None
    where = " in an evaluation" if evaluates else ""
    return Report(
        run.call,
        f"`{_named(asked, run)}` runs with grad enabled{where}: every activation is saved for a backward that never comes",
        _reason(mode, what, phase),
        Cost(
            "every activation of this forward, for as long as its result is held",
            "1.36 times the forward's peak, 1.56 against 1.15 GiB for a 4-layer language model; H200, torch 2.11",
        ),
        repair=lambda: _repair(asked, alike),
        subject=_named(asked, run),
        related=tuple(map(RelatedNode, said, others)),
    )


def _reason(mode: ModuleMode, what: Outcome, phase: Phase | None) -> str:
    if phase is not None:
        return "the same loop trains and evaluates, and grad stays enabled when it evaluates"
    if what.is_read_only and (mode.mode != "eval" or mode.may_be_later):
        return "its results are only read as numbers or detached: no backward can follow"
    where = "is put into eval mode elsewhere" if mode.may_be_later else "is in eval mode here"
    return f"the model {where}, and no backward {'follows' if what.is_read_only else 'is seen to follow'}"


def _repair(asked: Asked, found: list[Run]) -> Repair | None:
    from gpulint.fix.nodes import no_grad_decorator

    evaluator = asked.evaluator
    phases = (_phase(asked, one, outcome(evaluator, one.inner, one.where)) for one in found)
    if any(phases) or old_torch(evaluator, asked.file) is not None:
        return None
    decorates = torch_of(asked.program, asked.file) != (0, 4)  # from 0.4.1 on
    chosen = cover(evaluator, asked.steps, found, whole=decorates)
    if chosen is not None and chosen.whole:
        function = found[0].frame.function
        name, missing = asked.torch_name("no_grad", function.node)
        if name and not (missing and asked.torch_name("no_grad", found[0].call)[1] == ""):
            node: Any = asked.node(function.node)
            changes = (Decorate(node, no_grad_decorator(name)), *([AddImport(missing)] if missing else ()))
            doubt = chosen.doubt or doubt_of_old(asked)
            return Repair.unless(doubt, f"decorate `{function.name}` with `@{name}()`", changes)
        chosen = cover(evaluator, asked.steps, found, whole=False)  # the name is bound inside
    if chosen is None:
        return None
    what = "the loop" if isinstance(chosen.statements[0], LOOPS) else "it"
    return under_no_grad(asked, chosen.doubt, f"run {what} under `{{}}()`", *chosen.statements)


def _named(asked: Asked, run: Run) -> str:
    """The network as the code spells it; of one that runs itself, its class."""
    name, function = dotted(run.named), run.where.function.around[-1]
    if name and name == function.self_name and function.cls is not None:
        return function.cls.name
    return name or "the model"
