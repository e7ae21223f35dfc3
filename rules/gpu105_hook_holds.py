from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.rules._held.mended import by_methods

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.calls import called
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.hooks import Hook, Stored, hooks, runs_under, stored_by
from gpulint.analysis.queries.lifetime import emptied
from gpulint.analysis.queries.multiplicity import Repeats
from gpulint.analysis.queries.networks.forwards import Forward
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import arguments, called_on
from gpulint.answers import Answer, Question, confidence_of, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, RelatedNode, Repair, Report, Rule

_GRAPH: Final = Cost("the activation and the graph behind it, at every step", "16 to 34 MiB for an 8-layer MLP; H200, torch 2.11")  # fmt: skip
_BYTES: Final = Cost("the activations' own bytes, at every step", "16 MiB for the 8 of an MLP; H200, torch 2.11")  # fmt: skip
_SLOT: Final = Cost("the activations of the layers before it, until the place is filled anew")
_AGAIN: Final = (
    "`{}` adds one more hook each time, and none is ever removed",
    "what it is registered on lives on, and runs all of them from then on",
    Cost("one more call at every forward, and whatever the hooks' closures hold (2.00 MiB for a batch of 512 × 1,024)"),
)  # fmt: skip
_CYCLE: Final = (
    "a hook on a node of the graph holds its object, and with it the tensors of that graph which the object keeps",
    "the node belongs to autograd, where Python's collector does not look: use a weak reference to the object",
    Cost("the graph and what it has saved, for every forward whose circle nobody breaks"),
)  # fmt: skip
_UNDYING: Final = (
    "the handle of this hook is dropped: the hook stays on the module as long as that lives, with all that it holds",
    "each object of this class leaves its own hook behind, which runs at every forward and is never removed",
    Cost("what the object keeps, activations above all, for each object that was ever made"),
)  # fmt: skip


class HookHolds(Rule):
    """
    ## What it does
    Finds forward hooks that add a module's input or output, with its autograd graph, to a container that nothing
    empties, while a loop runs batches through the module; hooks that do so without a graph, but leave what they keep
    on the device (a *warning*); and hooks that are registered in every step on a module that lives on, and never
    removed.

    With a doubt it also tells of hooks that an object registers on a module which it was given, and drops the handle of:
    they stay, and the object with them, as long as the module lives; of hooks that are registered once a phase;
    of slots that get an activation moved but not cut from its graph; of inputs kept for a
    backward hook also where no backward comes; and of hooks on a node of the graph that hold an object.

    ## Why is this bad
    An activation that a hook keeps keeps the graph behind it, call after call. A hook that is registered again in
    every step runs once more in every step: what it holds and what it costs grow together.

    ## What it costs
    An 8-layer MLP, batch 512 × 1,024, whose hooks keep the outputs of its activations: 16 MiB more on the GPU and 26.1
    KiB more on the host in every training step; 34 MiB where no backward follows, 16 MiB under `no_grad`. Hooks that
    keep a number: 0 B and 742 B. A hook that is registered in every step: 1.03 KiB on the host, and 2.00 MiB on the GPU
    where its closure holds the batch (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn

    activations = []

    def keep(module, args, output):
        activations.append(output)

    def train(model: nn.Module, loader, optimizer):
        model.hidden.register_forward_hook(keep)
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    activations = []

    def keep(module, args, output):
        activations.append(output.detach().cpu())

    def train(model: nn.Module, loader, optimizer):
        model.hidden.register_forward_hook(keep)
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    Where the activation is part of the loss, empty the container in every step. Keep the handle that
    `register_forward_hook` gives, and `handle.remove()` it when the hook has served.

    ## Fix safety
    `.detach().cpu()` is offered as unsafe: later code meets a tensor on another device and without graph. Where the tensors
    are computed with, only `.detach()` is. Nothing is
    offered where a function that mentions the container calls `backward()`. A hook registered again and again has to
    be moved or removed by hand.
    """

    code = "GPU105"
    name = "hook-holds"
    severity = Severity.ERROR
    runtime_claim = Claim("drift")
    triggers = (
        (b"_hook(",),
        (b"register_forward", b"register_full_backward", b"register_backward", b"register_hook"),
    )
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        functions = (asked.file.body, *asked.file.functions)
        found = [one for function in functions for one in hooks(asked.evaluator, function)]
        seen = [(one.frame, one.inner) for one in found if one.inner is not None and "backward" in one.name]
        takers = {inner.function for frame, inner in seen if inner.function is not frame.function}
        calls = [(call, asked.root(one)) for one in takers for call in one.flow.every_call]
        takers |= {made for each in calls if (made := called(asked.evaluator, *each)[0]) is not None}
        told: set[Any] = set()  # one cause, however many layers have a hook
        for hook in found:
            stored = [one for one in stored_by(asked.evaluator, hook) if one.node not in told]
            claims = [_held(asked, one, takers) for one in stored]
            claims.append(_claim(hook, _AGAIN, _of_again(asked, hook)))
            claims.append(_claim(hook, _CYCLE, _of_cycle(asked, hook)))
            if hook.frame.function not in told and all(confidence_of(one.answers) is None for one in claims):
                claims.append(_claim(hook, _UNDYING, _of_undying(asked, hook)))
            if any(confidence_of(one.answers) is not None for one in claims):
                told.add(hook.frame.function)
            told.update(one.node for one in stored)
            yield from claims


def _claim(hook: Hook, texts: tuple[str, str, Cost], answers: Iterable[Answer]) -> Claimed:
    text, why, cost = texts
    message = text.format(hook.name)
    report = partial(Report, hook.call, message, why, cost, Severity.WARNING)
    return Claimed(hook.call, hook.name, until_refuted(answers), report)


def _of_again(asked: Asked, hook: Hook) -> Iterator[Answer]:
    """On what it stands that each step leaves its hook behind."""
    if hook.kind == "tensor" or (hook.kind == "unknown" and hook.name == "register_hook"):
        yield refuted(Question.OUTLIVES, "it goes with its tensor")
    flow = hook.frame.flow
    at, ways = _ways(asked, hook)
    way = next((one for rate in ("step", "every nth", "phase") for one in ways if one.rate == rate), None)
    if way is None:
        yield refuted(Question.REPEATS, "it is not seen to be registered in each step")
    between = set(flow.conditions(hook.call)).difference(flow.conditions(at))
    if (way is not None and way.flags) or not all(_selects(one, flow, at) for one in between):
        yield refuted(Question.REPEATS, "a condition may see to it that it is registered once")
    by = _removed(asked, hook)
    if by is not None:
        yield refuted(Question.OUTLIVES, "it is removed", by)
    if way is not None and way.rate == "phase":
        yield left_open(Question.REPEATS, "it is registered once a phase, and not in each step", way.loop)
    if hook.shared:
        yield left_open(Question.OUTLIVES, "who gets the handle may remove the hook")
    yield proven(Question.OUTLIVES, "each run of it leaves one more hook")
    yield from reached(asked.evaluator, hook.frame.function)


def _removed(asked: Asked, hook: Hook) -> Any:
    """What removes a hook: not a method that nobody calls."""
    for use in hook.removed:
        function, inside = use.frame.function, use.frame.caller is not None
        called = inside or any(one.certain for one in asked.evaluator.callers(function))
        if called or function.name.startswith("__") or function in (hook.frame.function, function.file.body):
            return use.node
    return None


def _ways(asked: Asked, hook: Hook) -> tuple[Any, list[Repeats]]:
    """How often a hook is registered, or those of all layers in a loop over them; and that loop."""
    at: Any = hook.call
    for loop in hook.frame.flow.loops(hook.call):
        if asked.multiplicity.of_loop(loop, hook.frame, hook.call) not in ("none", "few"):
            break
        at = loop
    return at, asked.multiplicity.of(at, hook.frame)


def _selects(condition: tuple[Any, bool], flow: Flow, at: Any) -> bool:
    """Whether a condition picks some of what a loop within a place goes through, and not those that have had none yet."""
    test, wanted = condition
    if not wanted or (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn)):
        return False
    chosen = (one.statement for one in flow.bound_in(test) if one.kind == "loop")
    return any(one is at or at in flow.loops(one) for one in chosen)


def _holds_object(hook: Hook) -> bool:
    """Whether the hook is a method of the object whose method registers it, or speaks of that object."""
    inner, own = hook.inner, hook.frame.function
    if inner is None or own.cls is None or inner.function.cls is not own.cls:
        return False
    at = hook.call if inner.function.takes_self else hook.node
    given = [one for each in (arguments(at) if at is hook.call else [at]) for one in ast.walk(each)]
    return any(isinstance(one, ast.Name) and one.id == own.self_name for one in given)


def _is_of_node(hook: Hook) -> bool:
    on: Any = hook.frame.flow.place(called_on(hook.call))
    return any(getattr(one, "attr", "") == "grad_fn" for one in ast.walk(on))


def _of_cycle(asked: Asked, hook: Hook) -> Iterator[Answer]:
    """On what it stands that an object and a node of the graph hold each other."""
    if not _is_of_node(hook) or hook.removed or not _holds_object(hook):
        yield refuted(Question.OUTLIVES, "it is on no node of the graph, is removed, or holds no object")
    yield proven(Question.OUTLIVES, "nothing removes the hook, which refers to the object strongly")
    yield left_open(Question.GRAPH, "whether what the object keeps leads back to that node is not shown")
    yield from reached(asked.evaluator, hook.frame.function)


def _of_undying(asked: Asked, hook: Hook) -> Iterator[Answer]:
    """On what it stands that objects stay with the hooks that they leave on a module that is not theirs."""
    function, cls = hook.frame.function, hook.frame.function.cls
    if not hook.dropped or cls is None or hook.kind == "tensor" or function.name in ("forward", "__call__"):
        yield refuted(Question.OUTLIVES, "somebody has its handle, or it is no object's")
    if _is_of_node(hook):
        yield refuted(Question.OUTLIVES, "it goes with its graph")
    own = [node for node, where in hook.origins if where is not None and where.function.cls is cls]
    if not hook.origins or not all(isinstance(node, ast.arg) for node in own):
        yield refuted(Question.OUTLIVES, "the module is the object's own")
    init = cls.methods.get("__init__", function) if cls is not None else function
    sites = [one.frame.function.file for one in asked.evaluator.callers(init)]
    elsewhere = any(one is not function.file for one in sites)  # others may import it as well
    if not elsewhere and all(one.rate == "once" for one in _ways(asked, hook)[1]):
        yield refuted(Question.REPEATS, "the program makes one such object")
    yield proven(Question.OUTLIVES, "the module comes from outside, and nobody has the handle")
    yield left_open(Question.REPEATS, "whether a second such object is made for the same module is not shown")
    yield from reached(asked.evaluator, function)


def _held(asked: Asked, one: Stored, takers: set[Function]) -> Claimed:
    under = list(runs_under(asked.multiplicity, one))
    on = [each for each, _ in under if grad_mode(asked.evaluator, each.call, each.frame).mode != "off"]
    running = [each for each, again in under if again]
    graph = one.graph and bool(on or not under)
    answers = until_refuted(_of_held(asked, one, running, takers, graph))
    at = one.node if asked.is_here(one.use.frame) else one.hook.call
    return Claimed(at, one.name, answers, partial(_report, asked, one, at, graph))


def _of_held(
    asked: Asked, one: Stored, running: list[Forward], takers: set[Function], graph: bool
) -> Iterator[Answer]:
    """On what it stands that what a hook keeps is too much for too long."""
    evaluator, frame = asked.evaluator, one.use.frame
    inside = set(ast.walk(one.hook.node))
    outside = [use for use in one.uses if use.frame is not frame or use.node not in inside]
    if not graph and (not one.grows or one.value.device == "host"):
        yield refuted(Question.GRAPH, "it has no graph, and goes to the host or makes way for the next")
    if any(use.role in ("backward", "fed") for use in one.uses):
        yield refuted(Question.BACKWARD, "a backward, or a forward, goes through what is kept")
    if one.grows:
        several = list(_emptied(asked, one))
        taken = [by for by, where, _ in several if where.function in takers]
        for by, where, bounds in several:
            beside = bounds or _is_in_time(asked, by, where, running)
            if frame.flow.conditions(one.use.node) if by in taken else beside:
                yield refuted(Question.OUTLIVES, "it is emptied, or bounded", by)
        if not (taken or graph) and _is_wanted_there(asked, outside):
            yield refuted(Question.READS, "what is made of it is wanted on the device")
        yield proven(Question.OUTLIVES, "nothing empties it where no backward comes")
    else:
        cut = any(use.role == "cuts" for use in outside)
        moved = _is_made(one)
        if not (cut or moved or one.hook.dropped):
            yield refuted(Question.MEANT, "whoever reads it may want its graph")
        yield proven(Question.OUTLIVES, "it stays until the next forward fills the same place")
        if not moved:
            yield left_open(Question.MEANT, "nothing shows that it is meant to be free of its graph")
        if not cut or any(use.role in ("returned", "given") for use in outside):
            yield left_open(Question.READS, "whether somebody takes a gradient through it is not shown")
    if not running:
        yield left_open(Question.REPEATS, "how many forwards run while the hook is there is not shown")
    yield from reached(evaluator, one.hook.frame.function)


def _emptied(asked: Asked, one: Stored) -> Iterator[tuple[Any, Frame, bool]]:
    """What empties what a hook fills, or bounds it; `d.setdefault(k, [])` makes nothing anew."""
    for each in one.containers:
        if not isinstance(each, ast.Call):
            yield from emptied(asked.evaluator, each, one.use.frame, True)


def _is_in_time(asked: Asked, by: Any, frame: Frame, running: list[Forward]) -> bool:
    """Whether something happens as often as a forward: beside one, or in each step. What nobody calls does not, where forwards are seen."""
    flow, events = frame.flow, asked.steps.of(frame.function)
    if any(not one.within and set(one.loops) <= set(flow.loops(by)) for one in events):
        return True
    rates = {one.rate for one in asked.multiplicity.of(by, frame)}
    return not running or not rates.isdisjoint(("step", "every nth"))


def _is_made(one: Stored) -> bool:
    """Whether something is made of what is stored: it is moved, copied or computed with."""
    flow = one.use.frame.flow
    bound = [each for node in ast.walk(one.node) if node in flow.parents for each in flow.reaching(node)]
    made = (one.node, *(each.value for each in bound if each.kind == "assign"))
    return any(isinstance(node, ast.Call) for each in made for node in ast.walk(each))


def _is_wanted_there(asked: Asked, outside: list[Use]) -> bool:
    """Whether what is made of all that is kept is given back, or computed with, as it is."""
    made = (use for use in outside if use.role == "computed")
    onwards = (consumers(asked.evaluator, use.node, use.frame, "storage") for use in made)
    roles = {use.role for several in onwards for use in several if use.row is None}
    return not roles.isdisjoint(("returned", "computed"))


def _report(asked: Asked, one: Stored, at: Any, graph: bool) -> Report:
    what = f"`{asked.source(one.node)}`" if at is one.node else "what it sees"
    how = "together with its autograd graph" if graph else "and leaves it on the device"
    verb, place = ("adds", "to") if one.grows else ("keeps", "in")
    related = RelatedNode("the hook is registered here", one.hook.call)
    return Report(
        at,
        f"the hook {verb} {what} {place} `{one.name}` at every forward, {how}",
        f"nothing empties `{one.name}`, or a backward alone, while batches run through the module"
        if one.grows
        else "the graph behind an activation keeps those of the layers before it, and moving a tensor does not cut it",
        (_GRAPH if graph else _BYTES) if one.grows else _SLOT,
        Severity.ERROR if graph and one.grows else Severity.WARNING,
        partial(_repair, asked, one, graph) if at is one.node and one.grows else None,
        (related,) if asked.is_here(one.hook.frame) else (),
    )


def _repair(asked: Asked, one: Stored, graph: bool) -> Repair | None:
    uses = consumers(asked.evaluator, one.node, one.use.frame, "storage")
    stays = _is_wanted_there(asked, uses) or any(use.role in ("given", "fed") for use in uses)
    methods = (*(("detach",) if graph else ()), *(() if stays else ("cpu",)))
    if isinstance(one.node, (ast.Tuple, ast.List, ast.BinOp)) or not methods:
        return None
    title = " and ".join({"detach": "detach it", "cpu": "move it to the host"}[each] for each in methods)
    why = f"what reads `{one.name}` may want its graph, and a module that gives several tensors gives a tuple"
    return by_methods(asked, (one.node,), methods, title, why)
