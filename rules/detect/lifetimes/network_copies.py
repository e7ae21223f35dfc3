"""Whole networks copied as they are, where they are, to be kept; and lists of `state_dict()` that are no copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.checkpoints import uses_cuda
from gpulint.rules.detect.lifetimes.reaching_back import own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.following import passed_before
from gpulint.analysis.code.loaded import chain_of, parents_of
from gpulint.analysis.file.lookup import called, qualified, with_words
from gpulint.analysis.questions.device.placement import on_gpu
from gpulint.analysis.questions.size.states import copy_doubts
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, left_open, proven, refuted
from gpulint.findings import Severity

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

Guards = tuple[ir.Stmt, ...]

# What is asked of a kept copy by who only keeps it.
_KEEPING = frozenset({"state_dict", "cpu", "zero_grad"})
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
    for holder, value, many in _kept(statement):
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


def _kept(statement: ir.Stmt) -> Iterator[tuple[str | None, ir.Expr, bool]]:
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
    if any(_trains(file, copy.function, loop.body) for loop in in_loop):
        return True
    above: list[ir.Stmt] = []
    for statement in ir.statements(copy.function.body):
        if statement is copy.stmt:
            break
        above.append(statement)
    return _trains(file, copy.function, above, nested=False) or (bool(in_loop) and _is_best(copy.guards))


def _trains(file: FileAnalysis, function: ir.Function, block: list[ir.Stmt], nested: bool = True) -> bool:
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
    return loop is not None and not _is_best(copy.guards) and not copy.many


def _is_best(guards: Guards) -> bool:
    """Under a comparison."""
    return any(
        isinstance(part, ir.Op) and part.op == "cmp"
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


# --- state dicts of several networks, or among other things ----------------------------------------------------------


def live_states(file: FileAnalysis) -> list[Suspicion]:
    """`best = [m.state_dict() for m in models]`, `return [m.state_dict() …]`: the live weights under another name."""
    found: list[Suspicion] = []
    if not any("load_state_dict" in evidence.called for evidence in file.evidence.values()):
        return []
    for function in with_words(file, frozenset({"state_dict"})):
        for statement, guards in with_guards(function.body, ()):
            for holder, value, many in _kept(statement):
                states = None if many or _is_protocol(function, holder) else _states_in(value)
                if states is not None and (holder is None or _is_best_state(guards, holder)):
                    found.append(_of_states(file, function, holder, value, _since(statement, guards)))
    return found


def _is_protocol(function: ir.Function, holder: str | None) -> bool:
    """Whether a method is an object's own `state_dict()`, which gives live tensors as torch's does."""
    return holder is None and function.name in ("state_dict", "get_state", "__getstate__", "get_state_dict")


def _states_in(value: ir.Expr) -> ir.Call | None:
    """A `state_dict()` as an element of a comprehension or a display, as it is."""
    parts: tuple[ir.Expr, ...] = ()
    if isinstance(value, ir.Comp):
        parts = value.elements[-1:]
    elif isinstance(value, ir.DictDisplay):
        parts = tuple(part for _, part in value.pairs)
    elif isinstance(value, ir.Seq):
        parts = value.items
    for part in parts:
        if (
            isinstance(part, ir.Call)
            and part.method == "state_dict"
            and not part.args
            and isinstance(part.func, ir.Attr)
        ):
            return part
    return None


def _is_best_state(guards: Guards, holder: str) -> bool:
    in_loop = any(isinstance(guard, (ir.For, ir.While)) for guard in guards)
    return _is_best(guards) and (in_loop or "." in holder)


def _since(statement: ir.Stmt, guards: Guards) -> int:
    """The row from which on a place may have what a statement puts there: that of the loop that comes back to what stands
    before it."""
    return next((guard.row for guard in guards if isinstance(guard, (ir.For, ir.While))), statement.row)


def _of_states(
    file: FileAnalysis, function: ir.Function, holder: str | None, value: ir.Expr, since: int
) -> Suspicion:
    where = f"`{holder}` holds" if holder is not None else "what is handed out is"
    return Suspicion(
        value,
        holder or "state_dict",
        f"{where} the weights themselves, on the GPU, and no copy: they change with every step of training",
        "`state_dict()` gives the tensors of the network; a snapshot is `{k: v.cpu() for k, v in ….items()}`",
        "what is put back later is not what was the best, and as long as it is kept the weights cannot be freed",
        tuple(_states_answers(file, function, holder, value, since)),
        Severity.INFO,
    )


def _states_answers(
    file: FileAnalysis, function: ir.Function, holder: str | None, value: ir.Expr, since: int
) -> Iterator[Answer]:
    if holder is None:
        owner = owner_of(function)
        kept = owner is not None and isinstance(value, ir.Comp) and _is_put_back(file, owner, function)
        if not kept:
            yield refuted(Question.READS, "nothing in the class puts it back into the networks")
        trainer = _keeps_while_it_trains(file, function)
        if trainer is not None:
            yield proven(
                Question.READS, f"`{trainer.name}` keeps it while it trains, and puts it back", trainer
            )
        else:
            yield left_open(
                Question.READS,
                "whether the callers keep it while the networks train, or save it, is not in sight",
            )
        return
    saved = loaded = copied = False
    for place, reader, expr in reads(file, function, holder):
        if place is function and "." not in holder:
            if reader.row < since or _is_bound_anew(function.body, holder, value, reader):
                continue  # what the place had before, or has by then
        around = [part for part in chain_of(expr, parents_of(reader)) if isinstance(part, ir.Call)]
        saved |= any("save" in part.method or "dump" in part.method for part in around)
        loaded |= any(part.method == "load_state_dict" for part in around) or isinstance(reader, ir.For)
        copied |= any("copy" in part.method for part in around)
    if copied:
        yield refuted(Question.READS, "it is copied after that")
    if saved and not loaded:
        yield refuted(Question.READS, "it is saved and not put back")
    if loaded:
        yield proven(Question.READS, "it is put back after further training")
    else:
        yield left_open(Question.READS, "what is done with it later is not in sight")


def _is_bound_anew(body: list[ir.Stmt], name: str, kept: ir.Expr, reader: ir.Stmt) -> bool:
    """Whether a name has got something else than what it kept on every way to where it is read."""

    def holds(statement: ir.Stmt) -> bool:
        return any(kept in one.expressions() for one in ir.statements([statement]))

    again = [
        guard.row
        for one, guards in with_guards(body, ())
        if one is reader
        for guard in guards
        if holds(guard)
    ]
    since = max(again, default=0)  # a loop around both brings back what it left there in the round before
    anew = False
    for statement in passed_before(body, reader):
        if holds(statement):
            anew = False
        elif isinstance(statement, ir.Assign) and any(one.path == name for one in targets(statement)):
            anew = statement.row > since
    return anew


def _keeps_while_it_trains(file: FileAnalysis, function: ir.Function) -> ir.Function | None:
    """The method that binds what is handed out to a name, trains in a loop, and puts what the name has back behind that."""
    owner = owner_of(function)
    for caller in owner.methods.values() if owner is not None else ():
        bound: set[str] = set()
        kept: set[str] = set()
        for statement in caller.body:
            if isinstance(statement, (ir.For, ir.While)) and _trains(file, caller, statement.body):
                kept |= bound
            if any(called(file, caller, call) is function for call in ir.own_calls(statement)):
                bound |= {target.path for target in targets(statement) if target.path is not None}
            for _, call in ir.calls([statement]) if kept else ():
                if "load" in call.method and any(arg.path in kept for arg in call.args):
                    return caller
    return None


def _is_put_back(file: FileAnalysis, owner: ir.Class, function: ir.Function) -> bool:
    """Whether another method takes such a list: it loads what a parameter gives, element by element."""
    for method in owner.methods.values():
        if method is function or "load_state_dict" not in file.evidence[method].called:
            continue
        given = {param.name for param in method.params} - {own_name(method)}
        for statement in ir.statements(method.body):
            if isinstance(statement, ir.For) and any(
                part.path in given for part in ir.walk(statement.iterable)
            ):
                return True
    return False
