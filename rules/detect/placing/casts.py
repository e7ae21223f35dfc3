"""Networks that are cast where they have been moved to: for a moment the GPU has the wide weights, of which it needs half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.lookup import called_in_project, qualified, with_words
from gpulint.analysis.questions.device.origins import bindings
from gpulint.analysis.questions.device.placement import is_gpu, uses_cuda
from gpulint.analysis.questions.reached.dead import is_dead
from gpulint.analysis.questions.size.networks import NetworkSizes
from gpulint.analysis.torch.types import (
    NARROW,
    NARROWING,
    SETS_UP,
    TAKES_TYPE,
    TYPE_OF_WEIGHTS,
)
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.rule import Cost, RelatedNode, Remove, Repair, Replace

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.analysis.file.program import FileAnalysis

COST = Cost(
    "all weights in their wide type on the GPU, beside the first of the narrow ones",
    "205 MiB at the peak, 88 MiB cast first, for a network of 173 MiB in float32; H200, torch 2.11",
)


@dataclass(frozen=True, slots=True)
class LateCast:
    """A cast of a network behind its move. `name` is the network's, `source` what it is made by, where the cast stands in
    one chain with that; `between` are the statements from the move to the cast, none in a chain."""

    function: ir.Function
    stmt: ir.Stmt
    cast: ir.Call
    moved_at: ir.Stmt
    move: ir.Call
    name: str
    made: ir.Expr
    between: tuple[ir.Stmt, ...] = ()
    conditional: bool = False

    @property
    def is_chain(self) -> bool:
        return self.stmt is self.moved_at


def late_casts(file: FileAnalysis) -> list[Suspicion]:
    """The casts of a file that stand behind the move to a GPU."""
    sizes = NetworkSizes(file)
    words = NARROWING | TAKES_TYPE
    found = [cast for function in with_words(file, words) for cast in _casts(file, function)]
    return [_suspicion(file, cast, sizes) for cast in found]


def _casts(file: FileAnalysis, function: ir.Function) -> Iterator[LateCast]:
    for statement, call in ir.calls(function.body):
        if _narrows(file, function, call) and not is_dead(file, function, statement):
            move = _moved_below(call)
            found = (
                _in_chain(function, statement, call, move)
                if move is not None
                else _after_move(function, statement, call)
            )
            if found is not None:
                yield found


def _narrows(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """`net.half()`, `net.to(torch.bfloat16)`; not `net.to(device, torch.half)`, which casts on the way."""
    if not isinstance(call.func, ir.Attr):
        return False
    if call.method in NARROWING:
        return not call.args and not call.keywords
    if call.method not in TAKES_TYPE or len(call.args) + len(call.keywords) != 1:
        return False
    given = call.args[0] if call.args else call.keyword("dtype")
    return given is not None and qualified(file, function, given.path) in NARROW


def _moved_below(call: ir.Call) -> ir.Call | None:
    """The move in `net.cuda().eval().half()`."""
    inner = call.func.base if isinstance(call.func, ir.Attr) else None
    while isinstance(inner, ir.Call) and isinstance(inner.func, ir.Attr) and inner.method in SETS_UP:
        if _moves(inner):
            return inner
        inner = inner.func.base
    return None


def _moves(call: ir.Call) -> bool:
    """Whether a call moves, and does not cast on the way."""
    if call.method == "cuda":
        return True
    return call.method == "to" and len(call.args) + len(call.keywords) == 1 and call.keyword("dtype") is None


def _in_chain(function: ir.Function, statement: ir.Stmt, cast: ir.Call, move: ir.Call) -> LateCast | None:
    assert isinstance(move.func, ir.Attr)
    base = move.func.base
    target = statement.targets[0].path if isinstance(statement, ir.Assign) else None
    name = base.path or target
    return None if name is None else LateCast(function, statement, cast, statement, move, name, base)


def _after_move(function: ir.Function, statement: ir.Stmt, cast: ir.Call) -> LateCast | None:
    """`net = net.cuda()`, then `net.half()` or `net = net.half()` in the same block, or under a condition."""
    base = cast.func.base if isinstance(cast.func, ir.Attr) else None
    name = None if base is None else base.path
    if name is None or not _is_alone(statement, cast, name):
        return None
    block, conditional = _block_of(function.body, statement)
    before: list[ir.Stmt] = []
    for earlier in reversed(block):
        move = _move_of(earlier, name)
        if move is not None and isinstance(move.func, ir.Attr):
            between = tuple(reversed(before))
            return LateCast(
                function, statement, cast, earlier, move, name, move.func.base, between, conditional
            )
        before.append(earlier)
        if any(part.path == name for part in ir.own_parts(earlier)) and not _sets_up(earlier, name):
            return None
    return None


def _is_alone(statement: ir.Stmt, call: ir.Call, name: str) -> bool:
    """Whether a statement does nothing but to call: `net.half()`, `net = net.half()`."""
    if isinstance(statement, ir.ExprStmt):
        return statement.value is call
    plain = isinstance(statement, ir.Assign) and statement.value is call and len(statement.targets) == 1
    return plain and statement.targets[0].path == name  # type: ignore[attr-defined]


def _block_of(block: list[ir.Stmt], wanted: ir.Stmt) -> tuple[list[ir.Stmt], bool]:
    """What stands before a statement in its block, or, where that is a branch of it alone, before the branch; and whether
    that is so."""
    for position, statement in enumerate(block):
        if statement is wanted:
            return block[:position], False
        for inner in statement.blocks():
            if any(one is wanted for one in ir.statements(inner)):
                found, conditional = _block_of(inner, wanted)
                if isinstance(statement, ir.If) and not found and not conditional:
                    return block[:position], True
                return found, conditional
    return [], False


def _move_of(statement: ir.Stmt, name: str) -> ir.Call | None:
    """The call that moves a network in a statement that binds or moves it, and nothing else."""
    if isinstance(statement, ir.ExprStmt):
        value: ir.Expr | None = statement.value
        if not (
            isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and value.func.base.path == name
        ):
            return None
    elif isinstance(statement, ir.Assign) and [target.path for target in statement.targets] == [name]:
        value = statement.value
    else:
        return None
    while isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and value.method in SETS_UP:
        if _moves(value):
            return value
        value = value.func.base
    return None


def _sets_up(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement only readies the network: `net.eval()`, `net.load_state_dict(weights)`."""
    return (
        all(
            isinstance(part, ir.Call)
            and isinstance(part.func, ir.Attr)
            and part.func.base.path == name
            and part.method in SETS_UP
            for part in ir.own_parts(statement)
            if isinstance(part, ir.Call) and any(inner.path == name for inner in ir.walk(part))
        )
        and not statement.blocks()
    )


# --- what the claim stands on ---------------------------------------------------------------------------------------


def _suspicion(file: FileAnalysis, late: LateCast, sizes: NetworkSizes) -> Suspicion:
    answers = until_refuted(_answers(file, late, sizes))
    return Suspicion(
        late.cast,
        late.name,
        f"`{late.name}` is cast where it has been moved to: the GPU has all its wide weights first",
        "cast on the host, or by the call that moves, `.to(device, dtype)`, each tensor arrives in its narrow type",
        COST,
        answers,
        related=() if late.is_chain else (RelatedNode("it is moved here", late.move),),
        repair=partial(_repair, file, late),
    )


def _answers(file: FileAnalysis, late: LateCast, sizes: NetworkSizes) -> Iterator[Answer]:
    makers = _makers(file, late)
    yield _is_network(file, late, sizes, makers)
    yield _on_gpu(file, late)
    yield from _was_wide(file, late, makers)
    yield _how_large(late, sizes)
    if _trains(file):
        yield left_open(
            Question.TRAINED, "what the training takes later may be more than the network takes here"
        )
    if late.conditional:
        yield left_open(Question.REACHED, "the cast stands under a condition", late.stmt)


def _makers(file: FileAnalysis, late: LateCast) -> list[ir.Call]:
    """The calls that make the network, as far as the function shows them."""
    found: list[ir.Call] = []
    pending: list[ir.Expr | None] = [late.made]
    bound = bindings(late.function)
    for _ in range(6):
        value = pending.pop() if pending else None
        while isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and value.method in SETS_UP:
            value = value.func.base
        if isinstance(value, ir.Call) and value is not late.cast:
            found.append(value)
        elif isinstance(value, ir.Name):
            pending += bound.pop(value.id, [])
        elif isinstance(value, ir.Attr):
            pending += _bound_to(late, value.path)
    return found


def _bound_to(late: LateCast, path: str | None) -> Iterator[ir.Expr]:
    """What the function binds an attribute to, other than what it already is."""
    for statement in ir.statements(late.function.body):
        for target, value in pairs(statement) if isinstance(statement, ir.Assign) else ():
            base = value
            while isinstance(base, ir.Call) and isinstance(base.func, ir.Attr) and base.method in SETS_UP:
                base = base.func.base
            if path is not None and target.path == path and base.path != path:
                yield value


def _is_network(file: FileAnalysis, late: LateCast, sizes: NetworkSizes, makers: list[ir.Call]) -> Answer:
    size = sizes.of(late.function, late.name)
    if file.treated_as_module(late.function, late.name) or (size is not None and size.most.about > 0):
        return proven(Question.TENSOR, f"`{late.name}` is a network")
    if any(
        (qualified(file, late.function, call.func.path) or "").endswith("from_pretrained") for call in makers
    ):
        return proven(Question.TENSOR, f"`{late.name}` is a network")
    return refuted(Question.TENSOR, f"`{late.name}` is not seen to be a network")


def _on_gpu(file: FileAnalysis, late: LateCast) -> Answer:
    if late.move.method == "cuda":
        return proven(Question.DEVICE, "it is moved to a GPU")
    device = late.move.argument(0, "device")
    known = is_gpu(file, late.function, device)
    if known is False:
        return refuted(Question.DEVICE, "it is moved to the host, or only cast")
    if known or (
        known is None and uses_cuda(file) and device is not None and "device" in (device.path or "")
    ):
        return proven(Question.DEVICE, "it is moved to a GPU where there is one")
    return left_open(Question.DEVICE, "whether it is moved to a GPU is not shown", late.move)


def _was_wide(file: FileAnalysis, late: LateCast, makers: list[ir.Call]) -> Iterator[Answer]:
    """Whether the weights are float32 when they are moved."""
    if any("set_default_dtype" in evidence.called for evidence in file.evidence.values()):
        yield refuted(Question.SIZE, "the program sets the type that networks are made with")
        return
    before = [part for part in ir.walk(late.made) if isinstance(part, ir.Call)]
    if any(_narrows(file, late.function, call) for call in (*before, *makers)):
        yield refuted(Question.SIZE, "it has been cast before it is moved")
        return
    for call in makers:
        callee = called_in_project(late.function, call)
        if callee is not None and any(
            _narrows(callee.home, callee, one) or _moves(one) for _, one in ir.calls(callee.body)
        ):
            yield refuted(Question.SIZE, f"`{callee.name}`, which makes it, casts or moves it", call)
            return
        names = {name for name, _ in call.keywords}
        if names & TYPE_OF_WEIGHTS:
            yield refuted(Question.SIZE, "its loader is told the type of the weights", call)
            return
        full = qualified(file, late.function, call.func.path) or ""
        if call.method == "from_pretrained" and None in names:
            yield left_open(Question.SIZE, "what else the loader is given may be a type", call)
        elif full.startswith("transformers."):
            yield left_open(
                Question.SIZE, "transformers from version 5 on loads the type that was saved", call
            )
        elif full in ("torch.load", "torch.jit.load") or call.method == "load":
            yield left_open(Question.SIZE, "of which type the loaded network is, the file says", call)
    yield proven(Question.SIZE, "nothing makes it narrower before it is moved")


def _how_large(late: LateCast, sizes: NetworkSizes) -> Answer:
    size = sizes.of(late.function, late.name)
    if size is not None and size.is_large:
        return proven(Question.SIZE, size.in_words(late.name))
    if size is not None and (size.is_small or size.looks_small):
        return refuted(Question.SIZE, size.in_words(late.name))
    return left_open(Question.SIZE, "how large the network is, the code does not say")


def _trains(file: FileAnalysis) -> bool:
    return any(evidence.backward or evidence.optimizers for evidence in file.evidence.values())


# --- mending --------------------------------------------------------------------------------------------------------


def _repair(file: FileAnalysis, late: LateCast) -> Repair | None:
    """The cast in front of the move."""
    if late.conditional:
        return None
    message = "cast it before it is moved"
    why_unsafe = _why_unsafe(file, late)
    if late.is_chain:
        return Repair.unless(why_unsafe, message, (Replace(late.cast.node, _swapped(late)),))
    moved = late.move.node
    cast_first = moved.with_changes(
        func=moved.func.with_changes(
            value=late.cast.node.with_changes(func=_attribute(late, moved.func.value))
        )
    )
    return Repair.unless(why_unsafe, message, (Replace(moved, cast_first), Remove(late.stmt.node)))


def _why_unsafe(file: FileAnalysis, late: LateCast) -> str:
    between = {call.method for statement in late.between for call in ir.own_calls(statement)}
    if between - {"eval", "train", "requires_grad_"}:
        return "what is done to the network between the two is done to narrow weights then"
    network = next(
        (
            value.ref
            for call in _makers(file, late)
            if (value := file.top_level(call.func.path or "")) is not None
            and isinstance(value.ref, ClassInfo)
        ),
        None,
    )
    if network is None:
        makers = {qualified(file, late.function, call.func.path) or "" for call in _makers(file, late)}
        if makers and all(full.startswith(("torch", "transformers.", "timm.")) for full in makers):
            return ""
        return "a `to` or `half` of the network's own class may do more"
    own = next((name for name in ("to", "cuda", "half", "bfloat16", "_apply") if network.method(name)), None)
    return "" if own is None else f"`{network.cls.name}` has a `{own}` of its own"


def _attribute(late: LateCast, base: cst.BaseExpression) -> cst.BaseExpression:
    return late.cast.node.func.with_changes(value=base)  # type: ignore[no-any-return]


def _swapped(late: LateCast) -> cst.BaseExpression:
    """`net.half().cuda().eval()` for `net.cuda().eval().half()`."""
    assert isinstance(late.move.func, ir.Attr)
    chain = late.cast.node.with_changes(func=_attribute(late, late.move.func.base.node))
    links: list[cst.Call] = []
    link = late.cast.node.func.value
    while link is not late.move.func.base.node:
        links.append(link)
        link = link.func.value
    for one in reversed(links):
        chain = one.with_changes(func=one.func.with_changes(value=chain))
    return chain  # type: ignore[no-any-return]
