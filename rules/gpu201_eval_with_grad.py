from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpulint.analysis.code import ir
from gpulint.analysis.file.asking import FileFacts
from gpulint.analysis.file.facts import Forward, FunctionFacts, Loop
from gpulint.analysis.values.values import Grad
from gpulint.findings import Severity
from gpulint.rule import Repair, Report, Rule


class EvalWithGrad(Rule):
    """
    ## What it does
    Finds evaluation and inference whose forward runs with grad enabled although nothing ever calls backward.

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
    samplers by gradients, a backward from another process).
    """

    code = "GPU201"
    name = "eval-with-grad"
    severity = Severity.WARNING
    facts_only = True
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

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        for function in facts.functions:
            found = sorted(_found(facts, function), key=lambda found: found[0].order)
            certain = [forward for forward, doubt in found if not doubt]
            handed = _is_callback(facts, function)
            if certain and handed and any(not forward.evaluating for forward in certain):
                yield _report(facts, function, certain, _handed(function))
            elif certain:
                yield _report(facts, function, certain)
            elif found and not handed:
                doubt = found[0][1]
                yield _report(facts, function, [forward for forward, other in found if other == doubt], doubt)


def _found(facts: FileFacts, function: FunctionFacts) -> Iterator[tuple[Forward, str]]:
    """The forwards that need no grad, each with what leaves that open: nothing, or one thing."""
    from gpulint.analysis.questions.grad.doubts import Doubts

    doubts = facts.ask(Doubts)
    for forward in function.forwards:
        shown = _wasted(forward, function) or _looked_up(facts, forward, function)
        suspicion = "" if shown else _suspicion(facts, forward, function)
        if (shown or suspicion) and not doubts.about(function, forward):
            doubt = doubts.open(function, forward)
            if not (suspicion and doubt):
                yield forward, suspicion or doubt


def _handed(function: FunctionFacts) -> str:
    return f"`{function.function.name}` is handed to others, who may call it with grad switched off"


def _is_callback(facts: FileFacts, function: FunctionFacts) -> bool:
    ways_in = {function.function.name, *(entry.name for entry in function.entries)}
    return not ways_in.isdisjoint(facts.handed_out)


def _wasted(forward: Forward, function: FunctionFacts, mode: Grad = Grad.ENABLED) -> bool:
    """Whether nothing can need this forward's graph, where grad is as `mode` says."""
    if forward.grad is not mode or forward.site is None:
        return False
    if forward.in_handler or forward.by_choice:
        return False  # no_grad was tried before, or the caller chooses: the author knows why
    if forward.freed:
        return forward.phased and forward.train_only_backward and bool(forward.loops)
    if not _is_unwanted(forward, function):
        return False
    if forward.evaluating:
        return bool(forward.loops) or forward.read_only or forward.read_by_callers
    if not forward.proven or not forward.read_only or forward.in_module_method:
        return False
    if forward.by_role and not _in_rounds_over_data(forward):
        return False
    if forward.weightless:
        return False  # a filter or a loss, no network
    if forward.loops:
        if not any(loop.over_data or _has_items(loop) for loop in forward.loops):
            return False  # steps of an environment or a solver, one small state at a time
        return forward.used or (forward.assigned and forward.loops[-1].over_data)
    return forward.used and not function.has_backward


def _is_unwanted(forward: Forward, function: FunctionFacts) -> bool:
    """Whether nothing around a forward is there for gradients."""
    if function.needs_grad or function.uses_autograd or function.is_module_forward:
        return False
    if forward.trains_nearby and not _is_measured(function, forward):
        return False
    if not forward.call.args and not forward.call.keywords:
        return False  # a module without input makes parameters
    # A constructor that looks for shapes, a script that tries its module out.
    return not (
        function.function.name == "__init__" or (function.function.name == "<module>" and not forward.loops)
    )


def _suspicion(facts: FileFacts, forward: Forward, function: FunctionFacts) -> str:
    """What leaves it open whether a forward that nobody here needs grad for is an evaluation's; empty where that is a guess."""
    from gpulint.analysis.file.differentiating import file_differentiates
    from gpulint.analysis.questions.grad.doubts import Doubts

    if forward.grad is Grad.UNKNOWN and _wasted(forward, function, Grad.UNKNOWN):
        chosen = facts.ask(Doubts).chooses_mode(forward.function)
        return "" if chosen else "whether grad is on cannot be seen: something around it may switch it off"
    if forward.grad is not Grad.ENABLED or forward.site is None or forward.freed or forward.weightless:
        return ""
    if forward.in_handler or forward.by_choice:
        return ""
    if forward.evaluating and _is_unwanted(forward, function):
        if forward.used and not (forward.returned or forward.stored):
            return "besides what reads it as a number, its result goes to a function that is not seen"
    if forward.evaluating and _comes_after_training(forward, function):
        return "the same function trains before it, and what becomes of its result is not seen"
    if not forward.evaluating or facts.ask(file_differentiates) or not _is_unwanted(forward, function):
        return ""
    if forward.network is None and "." in forward.path.removeprefix("self."):
        return ""  # a part of a network, which may be none itself: `model.tokenizer(text)`
    return "its result goes to code that is not seen, which may want its gradient"


def _comes_after_training(forward: Forward, function: FunctionFacts) -> bool:
    """Whether a function trains in a loop, and then runs the network in eval mode."""
    before = [backward for backward in function.backwards if backward.loops]
    return (
        not forward.loops
        and not forward.phased
        and function.steps == 0
        and len(before) == len(function.backwards) > 0
        and not function.needs_grad
        and not function.uses_autograd
    )


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
    if not (forward.evaluating and forward.read_only) or forward.phased:
        return False
    if forward.after_training:
        return True
    in_loops = function.steps == 0 and all(backward.loops for backward in function.backwards)
    return in_loops and forward.used and not forward.loops


def _looked_up(facts: FileFacts, forward: Forward, function: FunctionFacts) -> bool:
    """Whether a settled network is asked about a text or a picture, in a file that file_differentiates nothing: the result
    goes to the caller with the graph of all the weights."""
    from gpulint.analysis.file.differentiating import file_differentiates

    if forward.grad is not Grad.ENABLED or forward.site is None or forward.freed or not forward.fresh_inputs:
        return False
    if function.uses_autograd or forward.in_module_method or not forward.proven or forward.by_role:
        return False
    if not (forward.evaluating or forward.pretrained) or function.function.name in ("__init__", "<module>"):
        return False
    return forward.returned and not facts.ask(file_differentiates)


def _report(
    facts: FileFacts, function: FunctionFacts, forwards: Sequence[Forward], doubt: str = ""
) -> Report:
    forward = forwards[0]
    path = forward.path or "the model"
    if forward.freed:
        reason = "the same loop trains and evaluates, and grad stays enabled when it evaluates"
    elif forward.evaluating and (forward.loops or forward.read_only or forward.read_by_callers):
        reason = "the model is in eval mode here, and no backward follows"
    elif forward.evaluating and doubt:
        reason = "the model is in eval mode here, and no backward is seen to follow"
    elif not forward.read_only:
        reason = "what it is given is made of numbers, its weights are not trained here, and its result goes to the caller"
    else:
        reason = "its results are only read as numbers or detached: no backward can follow"
    where = " in an evaluation" if forward.evaluating or forward.freed else ""
    return Report(
        forward.call.node,
        f"`{path}` runs with grad enabled{where}: every activation is saved for a backward that never comes",
        reason,
        "1.36 times the forward's peak memory (1.56 against 1.15 GiB for a 4-layer language model; H200, torch 2.11)",
        unless_guarded=function.only_called_elsewhere,
        repair=lambda: _repair(facts, function, forwards),
        doubt=doubt,
    )


def _repair(facts: FileFacts, function: FunctionFacts, forwards: Sequence[Forward]) -> Repair | None:
    from gpulint.analysis.questions.grad.guarding import Guarding
    from gpulint.nodes import no_grad_decorator, no_grad_with
    from gpulint.rule import AddImport, Decorate, Wrap

    if any(forward.freed for forward in forwards):
        return None
    cover = facts.ask(Guarding).cover(function, forwards)
    if cover is None:
        return None
    name = facts.torch_name("no_grad")
    imports = () if name is not None else (AddImport("torch"),)
    name = name or "torch.no_grad"
    if cover.whole:
        node = function.function.node
        change = Decorate(node, no_grad_decorator(name))
        message = f"decorate `{function.function.name}` with `@{name}()`"
        return Repair.unless(cover.doubt, message, (change, *imports))
    changes = tuple(Wrap(tuple(one.node for one in run), no_grad_with(name)) for run in cover.runs)
    what = "the loop" if cover.loop else "it"
    return Repair.unless(cover.doubt, f"run {what} under `{name}()`", (*changes, *imports))
