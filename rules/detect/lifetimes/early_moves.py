"""What is read from files and moved to the GPU in advance, all of it in one list, though it is looked at one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.lookup import with_words
from gpulint.analysis.questions.device.placement import is_gpu
from gpulint.analysis.questions.outlives.through_steps import receivers
from gpulint.answers import Answer, Question, left_open, proven, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Calls that read a picture, or another file, into the host's memory.
_PICTURES = re.compile(r"^(?:imread|read_image|imdecode|decode_jpeg|decode_image|default_loader)$")
_COST = "all of them on the GPU at once, where one would do: 19.4 MiB for a picture of 1,600 × 1,060"


def early_moves(file: FileAnalysis) -> list[Suspicion]:
    """`pictures.append(to_tensor(Image.open(path)).cuda())`, of which a loop looks at one after another later on."""
    found: dict[int, Suspicion] = {}
    for function in with_words(file, frozenset({"append"})):
        for loop in (one for one in ir.statements(function.body) if isinstance(one, ir.For)):
            for statement in ir.statements(loop.body):
                found.update((id(statement), one) for one in _of(file, function, loop, statement))
    return list(found.values())


def _of(file: FileAnalysis, function: ir.Function, loop: ir.For, statement: ir.Stmt) -> Iterator[Suspicion]:
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if not isinstance(call, ir.Call) or call.method != "append" or len(call.args) != 1:
        return
    holder = call.func.base if isinstance(call.func, ir.Attr) else None
    moved = call.args[0]
    if not isinstance(holder, ir.Name) or not isinstance(moved, ir.Call) or not _is_picture(loop, moved):
        return
    device = _device(file, function, moved)
    reading = _read_one_by_one(function, loop, holder.id) if device is not None else None
    if device is None or reading is None:
        return
    yield Suspicion(
        call,
        holder.id,
        f"`{holder.id}` has every picture on the GPU before the first of them is looked at",
        "they are looked at one by one: each can be moved when it is its turn",
        _COST,
        (
            device,
            *reading,
            unweighed(Question.SIZE, "how many pictures there are, and of what size, the code does not say"),
        ),
    )


def _device(file: FileAnalysis, function: ir.Function, moved: ir.Call) -> Answer | None:
    """Where the last call of a chain moves what it is called on."""
    if moved.method == "cuda":
        return proven(Question.DEVICE, "`.cuda()` moves it there", moved)
    known = is_gpu(file, function, moved.argument(0, "device")) if moved.method == "to" else False
    if known:
        return proven(Question.DEVICE, "the device is a GPU", moved)
    return left_open(Question.DEVICE, "which device it is, is not shown") if known is None else None


def _is_picture(loop: ir.For, moved: ir.Call) -> bool:
    """Whether the round reads what it moves from a picture's file."""
    names: set[str] = set()
    for _ in range(3):  # what it is made of is made before
        values = [moved] + [
            statement.value
            for statement in ir.statements(loop.body)
            if isinstance(statement, ir.Assign)
            and statement.value is not None
            and any(target.path in names for target in targets(statement))
        ]
        parts = [part for value in values for part in ir.walk(value)]
        if any(isinstance(part, ir.Call) and _reads(part) for part in parts):
            return True
        names |= {part.id for part in parts if isinstance(part, ir.Name)}
    return False


def _reads(call: ir.Call) -> bool:
    return call.func.path in ("Image.open", "PIL.Image.open") or bool(_PICTURES.search(call.method))


# --- who looks at them ------------------------------------------------------------------------------------------------


def _read_one_by_one(function: ir.Function, filling: ir.For, holder: str) -> list[Answer] | None:
    """What the readers of a list tell, here and in the callers that get it; None where none goes through it one by one, or
    something makes one tensor of it."""
    places: list[tuple[ir.Function, ir.Stmt, str]] = [(function, filling, holder)]
    places += [(one.function, one.stmt, one.name) for one in receivers(function, holder)]
    found: list[Answer] = []
    for scope, since, name in places:
        told = _reader(scope, since, name)
        if told is None:
            return None
        found += told
    return found or None


def _reader(scope: ir.Function, since: ir.Stmt, name: str) -> list[Answer] | None:
    answers: list[Answer] = []
    after, known = False, set[int]()
    for statement in ir.statements(scope.body):
        inside = isinstance(since, ir.For) and any(statement is one for one in ir.statements(since.body))
        if statement is since or not after or inside:
            after |= statement is since
            continue
        if isinstance(statement, ir.For) and (singles := _singles(statement, name)):
            known |= singles
            answers.append(_of_loop(scope, since, statement, name))
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Call) and part.method == "len":
                known |= {id(arg) for arg in part.args}
            if isinstance(part, ir.Name) and part.id == name and id(part) not in known:
                if isinstance(statement, ir.Return):
                    continue
                if any(c.method in ("cat", "stack", "append", "extend") for c in ir.own_calls(statement)):
                    return None
                answers.append(left_open(Question.READS, f"what else is done with `{name}` is not followed"))
    return answers


def _singles(loop: ir.For, name: str) -> set[int]:
    """The reads by which a loop looks at one element a round: `for x in xs`, `for x, y in zip(xs, ys)`, `xs[i]`."""
    found: set[int] = set()
    if not any(isinstance(part, (ir.Sub, ir.Op)) for part in ir.walk(loop.iterable)):
        found |= {
            id(part) for part in ir.walk(loop.iterable) if isinstance(part, ir.Name) and part.id == name
        }
    variables = {part.path for part in ir.walk(loop.target)}
    for statement in ir.statements(loop.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Sub) and isinstance(part.base, ir.Name) and part.base.id == name:
                if part.index.path in variables:
                    found.add(id(part.base))
    return found


def _of_loop(scope: ir.Function, since: ir.Stmt, loop: ir.For, name: str) -> Answer:
    if any(call.method == "backward" for _, call in ir.calls(loop.body)) or _again(scope, since, loop):
        clause = f"`{name}` is gone through again and again: it may be there so that each is copied once"
        return left_open(Question.MEANT, clause)
    return proven(Question.READS, f"a loop looks at one of `{name}` after another", loop)


def _again(scope: ir.Function, since: ir.Stmt, loop: ir.For) -> bool:
    """Whether a loop around this one goes through what was filled before it."""
    for around in ir.statements(scope.body):
        if isinstance(around, (ir.For, ir.While)) and around is not loop:
            inside = list(ir.statements(around.body))
            if any(one is loop for one in inside) and not any(one is since for one in inside):
                return True
    return False
