from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpulint.rules._no_grad import no_grad

from gpulint.analysis.code import ir
from gpulint.analysis.values.values import Grad
from gpulint.answers import (
    Answer,
    Considered,
    Question,
    Verdict,
    as_far,
    confidence_of,
    doubts_of,
    left_open,
    proven,
    refuted,
    until_refuted,
)
from gpulint.claims import Claim
from gpulint.findings import Severity, weight
from gpulint.rule import Cost, RelatedNode, Repair, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import Forward, FunctionFacts, Loop


class EvalWithGrad(Rule):
    """
    ## What it does
    Finds evaluation and inference whose forward runs with grad enabled although nothing ever calls backward.

    Told in doubt, where the text around it speaks for it: a network behind a method or a helper that is not seen,
    `model.evaluation_step(x)`; a phase that only a text chooses, `to_do == "train"`; a function that only its name says
    evaluates; pictures drawn beside a training step. What is not seen may switch grad off by itself. So is what may be too
    little to matter: a network of next to no weights, a loop that ends with its first round or has a handful, a forward
    that no loop is seen to run, a function that nothing in the program calls, a network that nothing puts on a GPU.

    Confidence is high where something shows that the forward saves much: pictures go through convolutions, batches go
    through it, or the network is known to be large. It is medium where nothing shows that, nor that it is little.

    ## Why is this bad
    With grad enabled the forward saves every activation for a backward that never comes. `model.eval()` changes
    dropout and batch norm, not this. That holds as well beside the training, for a look at the held-out data after the
    optimizer's step.

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
    changes no result: safe. Where the function calls code that is not seen, only the statements of the forwards are put
    under it; where the function is used other than by being called, it is not decorated. Where unseen code is called in
    the very statement, or gets the outputs, or a caller does: unsafe. Nothing is offered where autograd is used nearby (saliency, attacks, forces,
    samplers by gradients, a backward from another process), where the network may take gradients in its own forward, nor in a
    file written for a torch that has no `no_grad` yet.
    """

    code = "GPU201"
    name = "eval-with-grad"
    severity = Severity.WARNING
    runtime_claim = Claim("forward", unvisited=True)
    doubts = True
    triggers = (
        (b"torch", b"lightning", b"transformers", b"backward", b"cuda", b".eval()"),
        (
            b".eval()",
            b".train(False)",
            b"argmax",
            b"detach",
            b"item()",
            b"tolist()",
            b"float(",
            b"numpy()",
            b"backward",
            b".data",
            b"torch.load(",
            b"register_forward_hook",
        ),
    )

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules._unseen import unseen_considered

        for function in facts.functions:
            for forward in function.forwards:
                answers = tuple(as_far(_answers(facts, forward, function)))
                yield Considered(forward.call, forward.module.path or "the model", answers)
        yield from unseen_considered(facts)

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules._unseen import unseen_reports

        told: set[ir.Function] = set()
        refused: dict[ir.Function, list[Forward]] = {}
        for function in facts.functions:
            found = sorted(_found(facts, function), key=lambda found: found[0].order)
            if found:  # one report a function: of what is least in doubt, from the first forward on
                doubts = min((doubts for _, doubts in found), key=weight)
                yield _report(facts, function, found, doubts)
                told.add(function.function)
            else:
                refused[function.function] = list(_refused(facts, function))
        yield from unseen_reports(facts, told, refused)


def _found(facts: FileFacts, function: FunctionFacts) -> Iterator[tuple[Forward, tuple[str, ...]]]:
    """The forwards that need no grad, each with what leaves that open."""
    for forward in function.forwards:
        answers = until_refuted(_answers(facts, forward, function))
        if confidence_of(answers) is not None:
            yield forward, doubts_of(answers)


def _refused(facts: FileFacts, function: FunctionFacts) -> Iterator[Forward]:
    """The forwards that are not told only because of what becomes of their results."""
    from gpulint.rules._unseen import may_be_asked_again

    for forward in function.forwards:
        words = facts.analysis.evidence[forward.function].called
        if may_be_asked_again(forward, words, until_refuted(_answers(facts, forward, function))):
            yield forward


def _answers(facts: FileFacts, forward: Forward, function: FunctionFacts) -> Iterator[Answer]:
    """On what the claim stands that a forward needs no grad, the cheap questions first."""
    from gpulint.analysis.questions.backward.read_by_callers import wanted_by_callers
    from gpulint.analysis.questions.grad.doubts import Doubts
    from gpulint.analysis.questions.grad.old_torch import predates_no_grad
    from gpulint.analysis.questions.size.forwards import ForwardSizes

    own = tuple(_own_answers(facts, forward, function))
    yield from own
    if not any(answer.verdict is Verdict.REFUTED for answer in own):
        sums = (hold for hold in function.holds if forward.site in hold.value.sites)
        yield from filter(None, (wanted_by_callers(facts.analysis, hold) for hold in sums))
        doubts = facts.ask(Doubts)
        yield from doubts.against(function, forward)
        doubtful = tuple(doubts.open(function, forward))
        yield from doubtful
        yield from facts.ask(predates_no_grad)
        certain = not doubtful and all(answer.verdict is Verdict.PROVEN for answer in own)
        if _is_callback(facts, function) and not (forward.mode.evaluating and certain):
            name = function.function.name
            why = f"`{name}` is handed to others, who may call it with grad switched off"
            yield left_open(Question.GRAD, why)
        if _stays(forward, function):
            return  # however small: it piles up
        yield from facts.ask(ForwardSizes).doubts(
            forward.function,
            forward.call,
            forward.module.path,
            forward.module.network,
        )


def _settled_by_readers(facts: FileFacts, forward: Forward) -> str:
    from gpulint.rules.detect.unseen.evaluations import UnseenEvaluations

    if forward.mode.grad is not Grad.ENABLED:
        return ""
    return facts.ask(UnseenEvaluations).readers.settled(forward.function, forward.call)


def _stays(forward: Forward, function: FunctionFacts) -> bool:
    """Whether its graph is kept from round to round."""
    live = (hold for hold in function.holds if hold.graph.state == "live" and not hold.rounds.bounded)
    return any(forward.site in hold.value.sites for hold in live)


def _own_answers(facts: FileFacts, forward: Forward, function: FunctionFacts) -> Iterator[Answer]:
    against = tuple(_needed(forward, function))
    if not against or _looked_up(facts, forward, function):
        yield proven(Question.GRAD, *_grad_mode(forward))
        yield proven(Question.BACKWARD, "no backward can go through what it gives")
        if forward.loops and not forward.mode.evaluating:
            yield from _of_rounds(forward)
    elif suspicion := _suspicion(facts, forward, function):
        settled = "" if function.backwards else _settled_by_readers(facts, forward)
        if settled:
            yield proven(Question.GRAD, *_grad_mode(forward))
            yield proven(Question.READS, settled)
        else:
            yield left_open(Question.READS, suspicion)
    else:
        yield from against


def _is_callback(facts: FileFacts, function: FunctionFacts) -> bool:
    ways_in = (function.function, *function.role.entries)
    if any(one.name in facts.handed_out for one in ways_in):
        return True
    file = facts.analysis
    return file.project is not None and any(file.project.uses_as_value(file.filename, one) for one in ways_in)


def _wasted(forward: Forward, function: FunctionFacts, mode: Grad = Grad.ENABLED) -> bool:
    """Whether nothing can need this forward's graph, where grad is as `mode` says."""
    return next(_needed(forward, function, mode), None) is None


def _needed(forward: Forward, function: FunctionFacts, mode: Grad = Grad.ENABLED) -> Iterator[Answer]:
    """What speaks for it that somebody needs this forward's graph, or that it makes none."""
    if forward.mode.grad is not mode:
        yield refuted(Question.GRAD, *_grad_mode(forward))
        return
    if forward.site is None:
        yield refuted(Question.GRAPH, "it makes no graph")
        return
    if forward.mode.in_handler:
        yield refuted(Question.MEANT, "this is what is done where something else has failed")
    if forward.result.by_choice:
        yield refuted(Question.MEANT, "its result is detached under a condition: the caller chooses")
    if forward.result.freed:
        if not (forward.mode.phased and forward.mode.train_only_backward and forward.loops):
            yield refuted(Question.BACKWARD, "a backward goes through its graph")
        return
    yield from _wanted(forward, function)
    if not forward.mode.evaluating:
        yield from _beyond_evaluation(forward, function)
    elif not (forward.loops or forward.result.read_only or forward.result.read_by_callers):
        yield refuted(Question.READS, "it runs once, and its result goes on as a tensor")


def _grad_mode(forward: Forward) -> tuple[str, Any]:
    """What grad is at a forward, and the node that says so, where it stands in the same function."""
    known = {Grad.ENABLED: "grad is on", Grad.DISABLED: "grad is off"}
    what = known.get(forward.mode.grad, "whether grad is on is not shown")
    if forward.mode.grad_set_by is not None:
        return f"{what}: this decides", forward.mode.grad_set_by
    return f"{what} where `{forward.function.name}` begins", None


def _beyond_evaluation(forward: Forward, function: FunctionFacts) -> Iterator[Answer]:
    """The same for a network that nothing has put into eval mode."""
    from gpulint.analysis.questions.repeats.acting import acts

    if not forward.module.proven:
        yield refuted(Question.GRAPH, "nothing shows that a network runs here")
    if not forward.result.read_only:
        yield refuted(Question.READS, "its result is used as a tensor, and it is not in eval mode")
    if forward.module.in_module_method:
        yield refuted(Question.REACHED, "it runs in a method of a module, as part of whatever calls that")
    if forward.module.by_role and not _in_rounds_over_data(forward):
        yield refuted(
            Question.GRAPH, "only its name says that it is a network, and no loop over data runs it"
        )
    if forward.module.weightless:
        yield refuted(Question.GRAPH, "a filter or a loss, no network")
    if forward.loops:
        if not _in_rounds_over_things(forward) and acts(
            forward.function.home, forward.function, forward.call
        ):
            yield refuted(Question.REPEATS, "steps of an environment, one small state at a time")
        elif not (forward.result.used or forward.result.assigned):
            yield refuted(Question.READS, "nothing reads its result")
    elif not forward.result.used or function.has_backward:
        yield refuted(Question.REPEATS, "it runs once, beside training or with nobody to read its result")


def _is_unwanted(forward: Forward, function: FunctionFacts) -> bool:
    """Whether nothing around a forward is there for gradients."""
    return next(_wanted(forward, function), None) is None


def _wanted(forward: Forward, function: FunctionFacts) -> Iterator[Answer]:
    """What around a forward is there for gradients."""
    if function.needs_grad or function.uses_autograd:
        yield refuted(Question.BACKWARD, "this function asks for gradients by other means than backward")
    if function.role.is_module_forward:
        yield refuted(Question.REACHED, "it is part of a module's own forward, which trains as well")
    if forward.mode.trains_nearby and not _is_measured(function, forward):
        yield refuted(Question.BACKWARD, "a backward or an optimizer runs beside it")
    if not forward.call.args and not forward.call.keywords:
        yield refuted(Question.GRAPH, "a module without input makes parameters")
    if function.function.name == "__init__" or (function.function.name == "<module>" and not forward.loops):
        yield refuted(Question.MEANT, "a constructor looks for shapes, a script tries its module out")


def _suspicion(facts: FileFacts, forward: Forward, function: FunctionFacts) -> str:
    """What leaves it open whether a forward that nobody here needs grad for is an evaluation's; empty where that is a guess."""
    from gpulint.analysis.file.differentiating import file_differentiates
    from gpulint.analysis.questions.grad.doubts import Doubts

    if forward.mode.grad is Grad.UNKNOWN and _wasted(forward, function, Grad.UNKNOWN):
        chosen = facts.ask(Doubts).chooses_mode(forward.function)
        return "" if chosen else "whether grad is on cannot be seen: something around it may switch it off"
    if (
        forward.mode.grad is not Grad.ENABLED
        or forward.site is None
        or forward.result.freed
        or forward.module.weightless
    ):
        return ""
    if forward.mode.in_handler or forward.result.by_choice:
        return ""
    if forward.mode.evaluating and _is_unwanted(forward, function):
        if forward.result.used and not (forward.result.returned or forward.result.stored):
            return "besides what reads it as a number, its result goes to a function that is not seen"
    if forward.mode.evaluating and _comes_after_training(forward, function):
        return "the same function trains before it, and what becomes of its result is not seen"
    if not forward.mode.evaluating or facts.ask(file_differentiates) or not _is_unwanted(forward, function):
        return ""
    if forward.module.network is None and "." in forward.module.path.removeprefix("self."):
        return ""  # a part of a network, which may be none itself: `model.tokenizer(text)`
    return "its result goes to code that is not seen, which may want its gradient"


def _comes_after_training(forward: Forward, function: FunctionFacts) -> bool:
    """Whether a function trains in a loop, and then runs the network in eval mode."""
    before = [backward for backward in function.backwards if backward.loops]
    return (
        not forward.loops
        and not forward.mode.phased
        and function.steps == 0
        and len(before) == len(function.backwards) > 0
        and not function.needs_grad
        and not function.uses_autograd
    )


def _of_rounds(forward: Forward) -> Iterator[Answer]:
    """What the loops around a forward leave open, where nothing else says that it evaluates."""
    if not _in_rounds_over_things(forward):
        why = "its rounds may be steps of an environment or a solver, one small state at a time"
        yield left_open(Question.REPEATS, why)
    if not (forward.result.used or forward.loops[-1].over_data):
        yield left_open(Question.READS, "what its result is for is not seen")


def _in_rounds_over_things(forward: Forward) -> bool:
    """Whether one of the loops goes through data or things, and does not merely count."""
    return any(loop.over_data or loop.counts_all or _has_items(loop) for loop in forward.loops)


def _has_items(loop: Loop) -> bool:
    """Whether a loop goes through things, and does not merely count."""
    stmt = loop.stmt
    return isinstance(stmt, ir.For) and not (
        isinstance(stmt.iterable, ir.Call) and stmt.iterable.method in ("range", "trange", "count")
    )


def _in_rounds_over_data(forward: Forward) -> bool:
    """Whether the innermost loop goes through data, those left out that run as often as the text says: a picture and its
    mirror image."""
    for loop in reversed(forward.loops):
        if loop.over_data or not loop.is_fixed:
            return loop.over_data
    return False


def _is_measured(function: FunctionFacts, forward: Forward) -> bool:
    """Whether a forward beside the training only tells how good the network is: in eval mode, outside the loops that train
    or after all that they do, and nothing of it is left but numbers."""
    if not (forward.mode.evaluating and forward.result.read_only) or forward.mode.phased:
        return False
    if forward.mode.after_training:
        return True
    in_loops = function.steps == 0 and all(backward.loops for backward in function.backwards)
    return in_loops and forward.result.used and not forward.loops


def _looked_up(facts: FileFacts, forward: Forward, function: FunctionFacts) -> bool:
    """Whether a settled network is asked about a text or a picture, in a file that file_differentiates nothing: the result
    goes to the caller with the graph of all the weights."""
    from gpulint.analysis.file.differentiating import file_differentiates

    if (
        forward.mode.grad is not Grad.ENABLED
        or forward.site is None
        or forward.result.freed
        or not forward.given.fresh_inputs
    ):
        return False
    if (
        function.uses_autograd
        or forward.module.in_module_method
        or not forward.module.proven
        or forward.module.by_role
    ):
        return False
    if not (forward.mode.evaluating or forward.module.pretrained) or function.function.name in (
        "__init__",
        "<module>",
    ):
        return False
    return forward.result.returned and not facts.ask(file_differentiates)


def _report(
    facts: FileFacts,
    function: FunctionFacts,
    found: Sequence[tuple[Forward, tuple[str, ...]]],
    doubts: tuple[str, ...],
) -> Report:
    forwards = [one for one, others in found if others == doubts]
    forward = forwards[0]
    path = forward.module.path or "the model"
    if forward.result.freed:
        reason = "the same loop trains and evaluates, and grad stays enabled when it evaluates"
    elif forward.mode.evaluating and (
        forward.loops or forward.result.read_only or forward.result.read_by_callers
    ):
        reason = "the model is in eval mode here, and no backward follows"
    elif forward.mode.evaluating and (doubts or not forward.given.fresh_inputs):
        reason = "the model is in eval mode here, and no backward is seen to follow"
    elif not forward.result.read_only:
        reason = "what it is given is made of numbers, its weights are not trained here, and its result goes to the caller"
    else:
        reason = "its results are only read as numbers or detached: no backward can follow"
    where = " in an evaluation" if forward.mode.evaluating or forward.result.freed else ""
    return Report(
        forward.call,
        f"`{path}` runs with grad enabled{where}: every activation is saved for a backward that never comes",
        reason,
        Cost(
            "every activation of this forward, for as long as its result is held",
            "1.36 times the forward's peak, 1.56 against 1.15 GiB for a 4-layer language model; H200, torch 2.11",
        ),
        unless_guarded=function.only_called_elsewhere,
        repair=lambda: _repair(facts, function, forwards),
        doubts=doubts,
        subject=forward.module.path,
        related=tuple(
            RelatedNode(_of_another(others, doubts), one.call) for one, others in found if one is not forward
        ),
    )


def _of_another(others: tuple[str, ...], doubts: tuple[str, ...]) -> str:
    """What is said of another forward of the same function."""
    return "and so does this" if others == doubts else f"so may this: {'; '.join(others)}"


def _may_go_back_itself(facts: FileFacts, function: FunctionFacts, forward: Forward) -> bool:
    """Whether the forward may take gradients by itself: under no_grad it would raise."""
    from gpulint.analysis.questions.grad.doubts import Doubts

    return any(answer.question is Question.BACKWARD for answer in facts.ask(Doubts).open(function, forward))


def _repair(facts: FileFacts, function: FunctionFacts, forwards: Sequence[Forward]) -> Repair | None:
    from gpulint.analysis.questions.grad.guarding import Guarding
    from gpulint.fix.nodes import no_grad_decorator, no_grad_with
    from gpulint.rule import Decorate, Wrap

    if any(forward.result.freed or _may_go_back_itself(facts, function, forward) for forward in forwards):
        return None
    cover = facts.ask(Guarding).cover(function, forwards)
    spelled = no_grad(facts)
    if cover is None or spelled is None:
        return None
    name, imports = spelled
    if cover.whole:
        node = function.function.node
        change = Decorate(node, no_grad_decorator(name))
        message = f"decorate `{function.function.name}` with `@{name}()`"
        return Repair.unless(cover.doubt, message, (change, *imports))
    changes = tuple(Wrap(tuple(one.node for one in run), no_grad_with(name)) for run in cover.runs)
    what = "the loop" if cover.loop else "it"
    return Repair.unless(cover.doubt, f"run {what} under `{name}()`", (*changes, *imports))
