"""Whole networks copied as they are, where they are, to be kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.checkpoints import uses_cuda
from gpulint.rules.detect.lifetimes.reaching_back import own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.loaded import chain_of, parents_of
from gpulint.analysis.file.lookup import qualified, with_words
from gpulint.analysis.questions.device.placement import on_gpu
from gpulint.analysis.questions.size.states import copy_doubts
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

Guards = tuple[ir.Stmt, ...]

# What is asked of a kept copy by who only keeps it.
_KEEPING = frozenset({"state_dict", "cpu", "zero_grad"})
# What the outcome of a comparison of scores goes by.
_BETTER = re.compile(
    r"(?i)(?:^|[._])(?:(?:is|was|new|has|found|got)_?(?:the_?|new_?)?best|(?:is_|has_)?improved)\b"
)
_TRAINING = frozenset(
    {"backward", "step", "fit", "train_epoch", "train_one_epoch", "train_step", "training_step"}
)


@dataclass(frozen=True, slots=True)
class _Copy:
    """`holder` is the path that keeps it, None where it is handed out; `network` what is copied."""

    function: ir.Function
    stmt: ir.Stmt
    guards: Guards
    call: ir.Call
    network: ir.Expr
    holder: str | None
    many: bool = False  # one more each time


def network_copies(file: FileAnalysis) -> list[Suspicion]:
    """Networks that are copied after they have trained, to be kept or handed out."""
    found: list[Suspicion] = []
    for function in with_words(file, frozenset({"deepcopy"})):
        for statement, guards in with_guards(function.body, ()):
            for copy in _copies(file, function, statement, guards):
                if _has_trained(file, copy) and not _is_in_a_step(copy):
                    found.append(_suspicion(file, copy))
    return found


def _copies(file: FileAnalysis, function: ir.Function, statement: ir.Stmt, guards: Guards) -> Iterator[_Copy]:
    for holder, value, many in kept(statement):
        if isinstance(value, ir.Call) and is_copy_of_network(file, function, value):
            yield _Copy(function, statement, guards, value, value.args[0], holder, many)


def is_copy_of_network(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """`copy.deepcopy(network)`."""
    return (
        call.method == "deepcopy"
        and len(call.args) == 1
        and not call.keywords
        and qualified(file, function, call.func.path) == "copy.deepcopy"
        and _is_network(file, function, call.args[0])
    )


def kept(statement: ir.Stmt) -> Iterator[tuple[str | None, ir.Expr, bool]]:
    """What a statement keeps under which name, or hands out, and whether beside others."""
    if isinstance(statement, ir.Return) and statement.value is not None:
        items = statement.value.items if isinstance(statement.value, ir.Seq) else (statement.value,)
        yield from ((None, item, False) for item in items)
    elif isinstance(statement, ir.Assign) and statement.value is not None:
        for target in statement.targets:
            if target.path is not None:
                yield target.path, statement.value, False
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        if call.method == "append" and call.args and isinstance(call.func, ir.Attr) and call.func.base.path:
            yield call.func.base.path, call.args[0], True


def _is_network(file: FileAnalysis, function: ir.Function, expr: ir.Expr) -> bool:
    path = expr.path
    if path is None:
        return False
    if file.treated_as_module(function, path):
        return True
    info = file.class_of(function)
    if info is not None and path.startswith(f"{own_name(function)}.") and path.count(".") == 1:
        return info.attr(path.partition(".")[2]).kind is Kind.MODULE
    state = file.states.get(function)
    known = state.vars.get(path) if state is not None else None
    return known is not None and known.kind is Kind.MODULE


def _has_trained(file: FileAnalysis, copy: _Copy) -> bool:
    """Whether the network is seen to train before it is copied: by a backward or a call that trains, above it or in its
    loop."""
    in_loop = [guard for guard in copy.guards if isinstance(guard, (ir.For, ir.While))]
    if any(trains(file, copy.function, loop.body) for loop in in_loop):
        return True
    above: list[ir.Stmt] = []
    for statement in ir.statements(copy.function.body):
        if statement is copy.stmt:
            break
        above.append(statement)
    return trains(file, copy.function, above, nested=False) or (bool(in_loop) and is_best(copy.guards))


def trains(file: FileAnalysis, function: ir.Function, block: list[ir.Stmt], nested: bool = True) -> bool:
    called = {call.method for statement in block for call in ir.own_calls(statement)}
    if nested:
        called |= {call.method for _, call in ir.calls(block)}
    if called & _TRAINING:
        return True
    return any(
        other.name in called and file.evidence[other].backward
        for other in file.module.functions
        if other is not function
    )


def _is_in_a_step(copy: _Copy) -> bool:
    """Whether the network is copied right before it is trained further, in a loop of tasks or clients: the copy works."""
    loop = next((g for g in reversed(copy.guards) if isinstance(g, (ir.For, ir.While))), None)
    return loop is not None and not is_best(copy.guards) and not copy.many


def is_best(guards: Guards) -> bool:
    """Under a comparison, or what one has been given a name for: `if is_best:`."""
    return any(
        (isinstance(part, ir.Op) and part.op == "cmp") or bool(_BETTER.search(part.path or ""))
        for guard in guards
        if isinstance(guard, ir.If)
        for part in ir.walk(guard.test)
    )


def _suspicion(file: FileAnalysis, copy: _Copy) -> Suspicion:
    name = copy.network.path or ""
    where = f"`{copy.holder}` keeps" if copy.holder is not None else "what is handed out is"
    return Suspicion(
        copy.call,
        copy.holder or name,
        f"{where} a copy of all of `{name}` where that is",
        "a copy of the weights stays beside the network that goes on training: keep its `state_dict()` on the host",
        "the weights once more, on the GPU (173 MiB for a 4-layer language model)",
        tuple(_answers(file, copy, name)),
    )


def _answers(file: FileAnalysis, copy: _Copy, name: str) -> Iterator[Answer]:
    yield _uses(file, copy)
    if _is_freed(copy, name):
        yield refuted(Question.DEVICE, "it is on the host by then, or made light on purpose")
    if on_gpu(file, copy.function, name, uses_cuda(file)):
        yield proven(Question.DEVICE, "the network is moved to a GPU")
    elif any("device" in evidence.words or "cuda" in evidence.words for evidence in file.evidence.values()):
        yield left_open(Question.DEVICE, "whether the network is on a GPU is not shown")
    else:
        yield refuted(Question.DEVICE, "the file speaks of no device")
    if not copy.many:
        yield from copy_doubts(lambda question: question(file), copy.function, name)


def _is_freed(copy: _Copy, name: str) -> bool:
    """`net.zero_grad(set_to_none=True)` or `net.cpu()` in the statements right before the copy."""
    before: list[ir.Stmt] = []
    for statement in ir.statements(copy.function.body):
        if statement is copy.stmt:
            break
        before.append(statement)
    return any(
        call.method in ("zero_grad", "cpu") and isinstance(call.func, ir.Attr) and call.func.base.path == name
        for statement in before[-3:]
        for call in ir.own_calls(statement)
    )


def _uses(file: FileAnalysis, copy: _Copy) -> Answer:
    """What becomes of the copy: a copy that computes or trains is a network of its own."""
    if copy.holder is None:
        return left_open(Question.READS, "what the callers do with the copy is not in sight")
    handed = False
    for function, statement, expr in reads(file, copy.function, copy.holder):
        around = chain_of(expr, parents_of(statement))
        nearest = around[0] if around else None
        if isinstance(statement, ir.Return):
            handed = True
        elif isinstance(nearest, ir.Attr) and nearest.attr not in _KEEPING:
            return refuted(Question.READS, f"the copy is used as a network in `{function.name}`", statement)
        elif isinstance(nearest, ir.Call) and nearest.func is expr:
            return refuted(Question.READS, f"the copy is run in `{function.name}`", statement)
        elif isinstance(nearest, ir.Call) and nearest.method not in ("save", "append", "len", "isinstance"):
            handed = True
        elif isinstance(statement, ir.For):
            return refuted(Question.READS, "the copies are gone through one by one", statement)
    if handed or copy.many:
        return left_open(Question.READS, "what else is done with the copy is not in sight")
    return proven(Question.READS, "the copy is only kept, saved or put back")


def reads(
    file: FileAnalysis, function: ir.Function, path: str
) -> Iterator[tuple[ir.Function, ir.Stmt, ir.Expr]]:
    """Where a place is read: a name in its function, an attribute in all methods of its class."""
    owner = owner_of(function)
    shared = "." in path and owner is not None
    places = [f for f in file.module.functions if owner_of(f) is owner] if shared else [function]
    for place in places:
        for statement in ir.statements(place.body):
            bound = set(statement.targets) if isinstance(statement, ir.Assign) else set()
            for root in statement.expressions():
                if root not in bound:
                    yield from ((place, statement, part) for part in ir.walk(root) if part.path == path)


def with_guards(block: list[ir.Stmt], guards: Guards) -> Iterator[tuple[ir.Stmt, Guards]]:
    """Each statement of a block with the loops and branches around it, outermost first."""
    for statement in block:
        yield statement, guards
        inner = (*guards, statement) if isinstance(statement, (ir.If, ir.For, ir.While)) else guards
        for part in statement.blocks():
            yield from with_guards(part, inner)
