"""Live weights taken for copies of them: lists and dicts of `state_dict()`, the best weights that a function hands out, and
what is put back into the very network that it is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.network_copies import Guards, is_best, kept, reads, trains, with_guards
from gpulint.rules.detect.lifetimes.reaching_back import own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.following import passed_before
from gpulint.analysis.code.handovers import is_of_its_round
from gpulint.analysis.code.loaded import chain_of, parents_of
from gpulint.analysis.file.lookup import called, with_words
from gpulint.analysis.questions.outlives.through_steps import receivers
from gpulint.answers import Answer, Question, left_open, proven, refuted
from gpulint.findings import Severity

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def live_states(file: FileAnalysis) -> list[Suspicion]:
    """`best = [m.state_dict() for m in models]`, `return [m.state_dict() …]`: the live weights under another name."""
    found: list[Suspicion] = []
    if not any("load_state_dict" in evidence.called for evidence in file.evidence.values()):
        return [*_handed_out(file)]
    for function in with_words(file, frozenset({"state_dict"})):
        for statement, guards in with_guards(function.body, ()):
            for holder, value, many in kept(statement):
                states = None if many or _is_protocol(function, holder) else _states_in(value)
                if states is not None and (holder is None or _is_best_state(guards, holder)):
                    found.append(_of_states(file, function, holder, value, _since(statement, guards)))
    return [*found, *_handed_out(file), *_put_back(file)]


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
    return is_best(guards) and (in_loop or "." in holder)


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
            if isinstance(statement, (ir.For, ir.While)) and trains(file, caller, statement.body):
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


# --- the weights of one network --------------------------------------------------------------------------------------


def _bare(value: ir.Expr) -> str | None:
    """`net` of `net.state_dict()`."""
    if isinstance(value, ir.Call) and value.method == "state_dict" and not value.args and not value.keywords:
        return value.func.base.path if isinstance(value.func, ir.Attr) else None
    return None


def _is_live_only(function: ir.Function, holder: str) -> bool:
    """Whether a place is bound to nothing but weights as they are, or to something plain, and no entry of it is replaced."""
    for statement in ir.statements(function.body):
        for target, value in _pairs(statement):
            if isinstance(target, ir.Sub) and target.base.path == holder:
                return False
            if target.path == holder:
                plain = isinstance(value, ir.Const) or (isinstance(value, ir.DictDisplay) and not value.pairs)
                if value is None or not (plain or _bare(value) is not None):
                    return False
    changes = ("update", "pop", "clear", "setdefault", "popitem")
    return not any(
        call.method in changes and isinstance(call.func, ir.Attr) and call.func.base.path == holder
        for _, call in ir.calls(function.body)
    )


def _pairs(statement: ir.Stmt) -> Iterator[tuple[ir.Expr, ir.Expr | None]]:
    """What a statement binds to what, one by one: `lowest, best = inf, None`."""
    for target in statement.targets if isinstance(statement, ir.Assign) else ():
        value = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(target, ir.Seq) and isinstance(value, ir.Seq):
            yield from zip(target.items, value.items, strict=False)
    for target in targets(statement):
        if not (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Seq)):
            yield target, statement.value if isinstance(statement, ir.Assign) else None


def _moves(statement: ir.Stmt, network: str) -> bool:
    """Whether a statement moves a network: its parameters get other tensors then, and the `state_dict()` keeps the old ones."""
    return any(
        call.method in ("to", "cuda", "cpu", "half", "float", "double")
        and isinstance(call.func, ir.Attr)
        and call.func.base.path == network
        for call in ir.own_calls(statement)
    )


def _handed_out(file: FileAnalysis) -> Iterator[Suspicion]:
    """`if better: best = net.state_dict()` in a loop that trains, and `return best`."""
    for function in with_words(file, frozenset({"state_dict"})):
        for statement, guards in with_guards(function.body, ()):
            for holder, value, many in kept(statement):
                if holder is None or many or "." in holder or (network := _bare(value)) is None:
                    continue
                if _is_changed_after(file, function, statement, guards, value) and _is_live_only(
                    function, holder
                ):
                    if any(_hands_out(other, holder) for other in ir.statements(function.body)):
                        yield _of_one(holder, network, value, (_taken(function, holder),))


def _is_changed_after(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, guards: Guards, value: ir.Expr
) -> bool:
    """Whether a score decides about the weights, and the loop goes on training the network that they are of."""
    loop = next((guard for guard in reversed(guards) if isinstance(guard, (ir.For, ir.While))), None)
    if loop is None or not is_best(guards) or not trains(file, function, loop.body):
        return False
    if isinstance(value, ir.Call) and is_of_its_round(guards, value):
        return False
    if any(_moves(one, _bare(value) or "") for one in ir.statements(loop.body)):
        return False
    branch = guards[-1]
    return not any(
        statement in block and any(isinstance(one, (ir.Jump, ir.Return)) for one in block)
        for block in branch.blocks()
    )


def _hands_out(statement: ir.Stmt, holder: str) -> bool:
    value = statement.value if isinstance(statement, ir.Return) else None
    items = value.items if isinstance(value, ir.Seq) else (value,)
    return any(item is not None and item.path == holder for item in items)


def _taken(function: ir.Function, holder: str) -> Answer:
    """Whether a caller is seen to take what is handed out."""
    receiver = next(receivers(function, holder), None)
    if receiver is None:
        return left_open(Question.READS, "what the callers do with it is not in sight")
    home = receiver.function.home.filename
    return proven(Question.READS, f"`{receiver.function.name}` takes it for the best", receiver.stmt, home)


def _put_back(file: FileAnalysis) -> Iterator[Suspicion]:
    """`kept = net.state_dict()`, a training or other weights loaded, and `net.load_state_dict(kept)`: nothing comes back."""
    for function in with_words(file, frozenset({"state_dict"})):
        for statement in ir.statements(function.body):
            for holder, value, many in kept(statement):
                network = _bare(value)
                if holder is None or many or network is None:
                    continue
                answer = (
                    _back_in_the_class(file, function, statement, holder, network)
                    if "." in holder
                    else _back_in_the_function(file, function, statement, holder, network)
                )
                if answer is not None:
                    yield _of_one(holder, network, value, (answer,))


def _back_in_the_function(
    file: FileAnalysis, function: ir.Function, kept_by: ir.Stmt, holder: str, network: str
) -> Answer | None:
    """Whether the network is trained, or given other weights, between the two, and is the same one all along. Where the name
    is bound again in between, that is told there."""
    if not _is_live_only(function, holder):
        return None
    after = False
    changed = any(
        isinstance(loop, (ir.For, ir.While))
        and kept_by in ir.statements(loop.body)
        and trains(file, function, loop.body)
        for loop in ir.statements(function.body)
    )
    for statement in ir.statements(function.body):
        if statement is kept_by:
            after = True
            continue
        if not after:
            continue
        if _moves(statement, network):
            return None
        bound = {target.path for target in targets(statement)}
        if bound & {holder, network, network.partition(".")[0]}:
            return None
        for call in ir.own_calls(statement):
            if _loads(call, network, holder):
                clause = "it is put back into the network that it is of, which changes nothing"
                return proven(Question.READS, clause, call) if changed else None
            changed |= _loads(call, network, None)
        changed |= trains(file, function, [statement], nested=False)
    return None


def _back_in_the_class(
    file: FileAnalysis, function: ir.Function, kept_by: ir.Stmt, holder: str, network: str
) -> Answer | None:
    """Whether another method of the class puts it back, and no method but the constructor makes the network anew."""
    owner = owner_of(function)
    if owner is None or not network.startswith(f"{own_name(function)}."):
        return None
    loading: ir.Call | None = None
    for method in owner.methods.values():
        for statement in ir.statements(method.body):
            anew = any(target.path == network for target in targets(statement))
            if method.name != "__init__" and (anew or _moves(statement, network)):
                return None
        if not _is_live_only(method, holder):
            return None
        if method is not function:
            loading = next((c for _, c in ir.calls(method.body) if _loads(c, network, holder)), loading)
    if loading is None:
        return None
    if function.name == "__init__" and not _is_moved_before(function, kept_by, network):
        return left_open(Question.READS, "whether the network is moved later, which leaves it these tensors")
    return proven(
        Question.READS, "it is put back into the network that it is of, which changes nothing", loading
    )


def _is_moved_before(function: ir.Function, kept_by: ir.Stmt, network: str) -> bool:
    """Whether a function moves a network, or binds one that it moves, before it keeps its weights, and no more after that."""
    moved = [
        statement.row
        for statement in ir.statements(function.body)
        if _moves(statement, network)
        or any(
            target.path == network and value is not None and _is_moved(value)
            for target, value in _pairs(statement)
        )
    ]
    return bool(moved) and max(moved) < kept_by.row


def _is_moved(value: ir.Expr) -> bool:
    return any(isinstance(part, ir.Call) and part.method in ("to", "cuda") for part in ir.walk(value))


def _loads(call: ir.Call, network: str, holder: str | None) -> bool:
    """Whether a call gives a network what a place holds, or, where none is asked for, any weights."""
    if call.method != "load_state_dict" or not isinstance(call.func, ir.Attr) or not call.args:
        return False
    return call.func.base.path == network and (holder is None or call.args[0].path == holder)


def _of_one(holder: str, network: str, value: ir.Expr, answers: tuple[Answer, ...]) -> Suspicion:
    return Suspicion(
        value,
        holder,
        f"`{holder}` holds the weights of `{network}` themselves, and no copy: they change with every step of training",
        "`state_dict()` gives the tensors of the network; a snapshot is `{k: v.cpu() for k, v in ….items()}`",
        "no memory, but the weights that were meant to be kept",
        answers,
        Severity.INFO,
    )
