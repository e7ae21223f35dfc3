"""Tensors that are moved to the GPU in every step, although they are the same in each, or could be made there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.lookup import qualified, with_words
from gpulint.analysis.questions.device.origins import bindings, device_of_move
from gpulint.analysis.questions.device.placement import is_gpu
from gpulint.analysis.questions.reached.dead import is_dead
from gpulint.analysis.torch.making import ALIKE, COPIED, MADE, RANDOM
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.findings import Severity
from gpulint.rule import Cost

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Loop
    from gpulint.analysis.file.program import FileAnalysis

_MOVES = frozenset({"to", "cuda"})
_MANY = 1 << 18  # numbers: 1 MiB of float32
_BY_SHAPE = frozenset({"zeros", "ones", "empty", "rand", "randn"})
_PURE = frozenset({"len", "int", "float", "size", "range", "list", "tuple", "dim", "numel", "min", "max"})


@dataclass(frozen=True, slots=True)
class Move:
    """A move in a loop. `made` is the call that makes the tensor on the host; None where it is a place that the loop leaves
    alone."""

    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    loop: Loop
    made: ir.Call | None
    guarded: bool

    @property
    def base(self) -> ir.Expr:
        assert isinstance(self.call.func, ir.Attr)
        return self.call.func.base


def repeated_moves(file: FileAnalysis) -> list[tuple[Move, Suspicion]]:
    """The moves of a file that a step repeats."""
    found = [move for function in with_words(file, _MOVES) for move in _found(file, function)]
    return [(move, _suspicion(file, move)) for move in found]


def _found(file: FileAnalysis, function: ir.Function) -> Iterator[Move]:
    for loop, statement, guarded in _in_steps(file, function.body, None, False):
        for call in ir.own_calls(statement):
            if (
                call.method not in _MOVES
                or not isinstance(call.func, ir.Attr)
                or is_dead(file, function, statement)
            ):
                continue
            if call.method == "to" and device_of_move(call) is None:
                continue
            made = _made(file, function, call.func.base)
            rebound = any(target.path == call.func.base.path for target in targets(statement))
            place = call.func.base.path is not None and not rebound
            if made is not None or place:
                yield Move(function, statement, call, loop, made, guarded)


def _in_steps(
    file: FileAnalysis, block: list[ir.Stmt], loop: Loop | None, guarded: bool
) -> Iterator[tuple[Loop, ir.Stmt, bool]]:
    """The statements that a step repeats, each with the innermost loop that makes steps, and whether a branch decides."""
    for statement in block:
        if loop is not None:
            yield loop, statement, guarded
        known = file.loops.get(id(statement))
        inside = loop
        if (
            known is not None
            and (known.backwards or known.steps or known.forwards)
            and not known.builds_model
        ):
            inside = known
        branches = isinstance(statement, (ir.If, ir.Try, ir.Match))
        for inner in statement.blocks():
            within = inside is loop and (guarded or branches)
            yield from _in_steps(file, inner, inside, within)


def _made(file: FileAnalysis, function: ir.Function, base: ir.Expr) -> ir.Call | None:
    if not isinstance(base, ir.Call) or base.keyword("device") is not None:
        return None
    return base if qualified(file, function, base.func.path) in MADE else None


def _suspicion(file: FileAnalysis, move: Move) -> Suspicion:
    what = "a tensor made on the host" if move.made is not None else f"`{move.base.path}`"
    name = move.base.path or (move.made.func.path if move.made is not None else "") or ""
    same = _is_same(move)
    advice = "move it once, before the loop" if same else "make it on the device: `device=` in the call"
    return Suspicion(
        move.call,
        name,
        f"{what} is moved to the GPU in every step" + (", and is the same in each" if same else ""),
        f"the host waits until the GPU has done all it was given before; {advice}",
        Cost(
            "a wait for the GPU in every step; no memory",
            "21.3 instead of 20.6 ms a step of a 4-layer language model; H200, torch 2.11",
        ),
        until_refuted(_answers(file, move)),
        Severity.INFO,
    )


# --- what the claim stands on ---------------------------------------------------------------------------------------


def _answers(file: FileAnalysis, move: Move) -> Iterator[Answer]:
    yield _repeats(move)
    if _is_true(move.call.keyword("non_blocking")):
        yield refuted(Question.MEANT, "with `non_blocking=True` the host does not wait for the copy")
    yield _to_gpu(file, move)
    if move.made is not None:
        full = qualified(file, move.function, move.made.func.path) or ""
        if full in COPIED and not _is_same(move):
            yield refuted(Question.READS, "its numbers are new in every step, and have to be brought there")
        if full in RANDOM - ALIKE:
            yield refuted(Question.MEANT, "its random numbers are new in every step, and are the host's")
        yield proven(Question.TENSOR, f"`{full}` makes a tensor on the host")
    else:
        yield from _place(file, move)
    yield _size(move)


def _size(move: Move) -> Answer:
    """Whether as much is moved as costs more than a wait: a step that waits elsewhere as well loses nothing by one more."""
    made = move.made
    if made is None:
        values = bindings(move.function).get(move.base.path or "", [])
        made = values[0] if len(values) == 1 and isinstance(values[0], ir.Call) else None
    numbers = _numbers(made)
    if numbers is None:
        return left_open(
            Question.SIZE, "how much is moved is not shown; a little costs a wait, and no memory"
        )
    if numbers < _MANY:
        return left_open(Question.SIZE, f"{numbers:,} numbers cost a wait, and no memory")
    return proven(Question.SIZE, f"{numbers:,} numbers are moved", made)


def _numbers(made: ir.Call | None) -> int | None:
    """How many numbers a call such as `torch.zeros(64, 1024)` makes; None where the text does not say."""
    if made is None or not made.args:
        return None
    first = made.args[0]
    if made.method in ("tensor", "as_tensor"):
        return len(first.items) if isinstance(first, ir.Seq) else None
    if isinstance(first, ir.Seq):
        sizes = first.items
    elif made.method in _BY_SHAPE or len(made.args) == 1:
        sizes = made.args
    else:
        return None  # from where to where, and how many
    known = [size.value for size in sizes if isinstance(size, ir.Const) and isinstance(size.value, int)]
    count = math.prod(known) if len(known) == len(sizes) else None
    return count**2 if count is not None and made.method == "eye" else count


def _is_true(value: ir.Expr | None) -> bool:
    return isinstance(value, ir.Const) and value.value is True


def _repeats(move: Move) -> Answer:
    if move.guarded:
        return left_open(Question.REPEATS, "a condition decides whether a step moves it", move.stmt)
    if move.loop.is_fixed:
        return refuted(Question.REPEATS, "the loop has as few rounds as the text says", move.loop.stmt)
    if not (move.loop.backwards or move.loop.steps):
        return left_open(
            Question.REPEATS, "how much the rest of a round takes, which does not train, is not shown"
        )
    return proven(Question.REPEATS, "the loop trains in every round", move.loop.stmt)


def _to_gpu(file: FileAnalysis, move: Move) -> Answer:
    if move.call.method == "cuda":
        return proven(Question.DEVICE, "it is moved to a GPU")
    device = device_of_move(move.call)
    known = is_gpu(file, move.function, device)
    path = device.path if device is not None else None
    if known is False:
        return refuted(Question.DEVICE, "it is moved to the host")
    if known or (path is not None and path.rpartition(".")[2] == "device"):
        return proven(Question.DEVICE, "it is moved to the device, a GPU where there is one")
    return left_open(Question.DEVICE, "whether it is moved to a GPU is not shown")


def _is_same(move: Move) -> bool:
    """Whether the tensor is the same in every round: it is made of what the loop leaves alone."""
    given = move.made if move.made is not None else move.base
    if move.made is not None and move.made.func.path is not None:
        inner: tuple[ir.Expr, ...] = (*move.made.args, *(value for _, value in move.made.keywords))
    else:
        inner = (given,)
    changed = _changed(move.loop)
    for part in (part for expr in inner for part in ir.walk(expr)):
        if isinstance(part, ir.Call) and part.method not in _PURE:
            return False
        if part.path is not None and _overlaps(part.path, changed):
            return False
    return True


def _changed(loop: Loop) -> set[str]:
    """The places that a loop binds or changes."""
    found: set[str] = set()
    if isinstance(loop.stmt, ir.For):
        found |= {part.path for part in ir.walk(loop.stmt.target) if part.path is not None}
    for statement in ir.statements(loop.stmt.body):
        for target in targets(statement):
            while isinstance(target, ir.Sub):
                target = target.base
            if target.path is not None:
                found.add(target.path)
        for comp in (part for part in ir.own_parts(statement) if isinstance(part, ir.Comp)):
            bound = (part.path for target, _, _ in comp.clauses for part in ir.walk(target))
            found |= {path for path in bound if path is not None}
        for call in ir.own_calls(statement):
            if isinstance(call.func, ir.Attr) and call.func.base.path is not None:
                if call.method.endswith("_") or call.method in (
                    "append",
                    "extend",
                    "update",
                    "insert",
                    "pop",
                ):
                    found.add(call.func.base.path)
    return found


def _overlaps(path: str, changed: set[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in changed)


def _place(file: FileAnalysis, move: Move) -> Iterator[Answer]:
    path = move.base.path or ""
    if not _is_same(move):
        yield refuted(Question.READS, "it is new in every step")
    if file.treated_as_module(move.function, path) or any(
        call.func.path == path for _, call in ir.calls(move.function.body)
    ):
        yield refuted(Question.TENSOR, "a network that has been moved stays there")
    values = bindings(move.function).get(path, [])
    made = [value for value in values if isinstance(value, ir.Call)]
    full = {qualified(file, move.function, value.func.path) for value in made}
    if values and len(made) == len(values) and full <= MADE and not any(v.keyword("device") for v in made):
        yield proven(Question.DEVICE, "it is made on the host", made[0])
    elif made and any(value.method in _MOVES or value.keyword("device") is not None for value in made):
        yield refuted(Question.DEVICE, "it has been moved before", made[0])
    elif any(part[:1].isupper() for name in full if name for part in name.split(".")[-1:]):
        yield refuted(Question.TENSOR, "it is an object that moves itself")
    else:
        yield left_open(Question.TENSOR, f"that `{path}` is a tensor is not shown")
        yield left_open(Question.DEVICE, f"that `{path}` is on the host is not shown")
