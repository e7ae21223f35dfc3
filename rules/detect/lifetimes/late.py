"""What is done with and stays bound through a peak: logits through a backward, an update's results through the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.network_copies import with_guards
from gpulint.rules.detect.lifetimes.reaching_back import own_name
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.reading import deletes, is_vocabulary
from gpulint.analysis.file.evidence import LOSSY
from gpulint.analysis.file.lookup import called, parts_given
from gpulint.analysis.questions.backward.saved_inputs import saved_logits, scored
from gpulint.analysis.torch.holders import STEP_METHODS
from gpulint.answers import Answer, Question, left_open, proven, refuted
from gpulint.findings import Severity
from gpulint.rule import Cost

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_TEXT = re.compile(r"(?i)token|input_ids|vocab|(?:^|_)ids$")


# --- logits through the backward --------------------------------------------------------------------------------------


def late_logits(file: FileAnalysis) -> list[Suspicion]:
    """Logits over a vocabulary that only their loss needs, and that are still bound when it goes backward."""
    found: list[Suspicion] = []
    for function in file.module.functions:
        if not file.evidence[function].backward or not file.evidence[function].called:
            continue
        for block in ir.every_block(function.body):
            for position, statement in enumerate(block):
                name = _logits_of_loss(statement)
                if (
                    name is None
                    or not _goes_backward(block[position + 1 :])
                    or _is_read(function, statement, name)
                ):
                    continue
                large = _is_over_a_vocabulary(function, name)
                whole = None if large is not None else _viewed(function, name)
                if whole is not None and not _is_read(function, statement, whole):
                    large, name = _is_over_a_vocabulary(function, whole), f"{name}`, `{whole}"
                if large is not None and isinstance(statement, ir.Assign):
                    found.append(_late(file, function, statement, name, large))
    return found


def _logits_of_loss(statement: ir.Stmt) -> str | None:
    """`logits` of `loss = self._loss_fn(logits, labels)`."""
    call = scored(statement)
    if call is None:
        return None
    if not LOSSY.search(call.method) and "loss" not in call.method.lower():
        return None
    given = call.args[0] if call.args else call.keyword("logits") or call.keyword("input")
    while isinstance(given, ir.Call) and isinstance(given.func, ir.Attr):
        if given.method not in ("view", "reshape", "flatten", "transpose", "permute", "float", "contiguous"):
            return None
        given = given.func.base
    return given.id if isinstance(given, ir.Name) else None


def _goes_backward(block: list[ir.Stmt]) -> bool:
    return any(call.method in ("backward", "manual_backward") for _, call in ir.calls(block))


def _is_read(function: ir.Function, loss: ir.Stmt, name: str) -> bool:
    """Whether the name is read or handed out behind the loss, or deleted before the backward."""
    behind = peaked = False
    for statement in ir.statements(function.body):
        if statement is loss:
            behind = True
        elif behind and any(
            isinstance(part, ir.Name) and part.id == name for part in ir.own_parts(statement)
        ):
            if not (peaked and deletes(statement, name)):
                return True
        elif behind:
            peaked |= _goes_backward([statement])
    return False


def _is_over_a_vocabulary(function: ir.Function, name: str) -> Answer | None:
    """Whether what the name holds has a score for each word of a vocabulary: shifted against its labels, or flattened."""
    hint: Answer | None = None
    for statement in ir.statements(function.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Sub) and part.base.path == name and _shifts(part.index):
                return proven(
                    Question.SIZE, "scores for the next token, shifted against the labels", statement
                )
            if isinstance(part, ir.Call) and isinstance(part.func, ir.Attr) and part.func.base.path == name:
                if any(is_vocabulary(arg) for arg in part.args):
                    return proven(
                        Question.SIZE, "flattened to one row of scores over the vocabulary", statement
                    )
        if isinstance(statement, ir.Assign) and any(target.path == name for target in targets(statement)):
            given = statement.value
            if isinstance(given, ir.Call) and any(
                _TEXT.search(part.path or "") for arg in given.args for part in ir.walk(arg)
            ):
                hint = left_open(
                    Question.SIZE, "that they are scores over a vocabulary is told by names alone", statement
                )
    return hint if "logits" in name else None


def _viewed(function: ir.Function, name: str) -> str | None:
    """`logits` of `flat = logits.view(-1, vocabulary)`: both names hold the same memory."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and any(target.path == name for target in targets(statement)):
            value = statement.value
            if (
                isinstance(value, ir.Call)
                and isinstance(value.func, ir.Attr)
                and value.method in ("view", "reshape", "flatten")
            ):
                return value.func.base.id if isinstance(value.func.base, ir.Name) else None
    return None


def _shifts(index: ir.Expr) -> bool:
    """`[..., :-1, :]`, `[:, :-1]`."""
    parts = index.items if isinstance(index, ir.Seq) else (index,)
    return len(parts) > 1 and any(
        isinstance(part, ir.Slice) and any(_is_minus_one(inner) for inner in part.parts) for part in parts
    )


def _is_minus_one(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value == -1


def _late(
    file: FileAnalysis, function: ir.Function, statement: ir.Assign, name: str, large: Answer
) -> Suspicion:
    are, stay = ("are", "stay") if "," in name else ("is", "stays")
    return Suspicion(
        statement,
        name,
        f"`{name}` {are} used here for the last time but {stay} alive through the backward",
        "nothing reads it again: `del` before the backward gives its memory back for the peak",
        Cost(
            "the output's own bytes, at the peak of the backward",
            "17 % of the peak for 500 MiB of logits, 2.88 against 2.39 GiB for a 4-layer language model; H200, torch 2.11",
        ),
        (large, saved_logits(file, function, statement)),
        Severity.INFO,
    )


# --- an update's results through the next -----------------------------------------------------------------------------


def late_results(file: FileAnalysis) -> list[Suspicion]:
    """`exp, info, loss = self._update(…)` in a loop: what one update gives is bound until the next has run."""
    found: list[Suspicion] = []
    for function in file.module.functions:
        if not file.evidence[function].has_loop:
            continue
        for statement, guards in with_guards(function.body, ()):
            loop = next((g for g in reversed(guards) if isinstance(g, (ir.For, ir.While))), None)
            if loop is None or not isinstance(statement, ir.Assign) or len(statement.targets) != 1:
                continue
            target, call = statement.targets[0], statement.value
            if (
                not isinstance(target, ir.Seq)
                or not isinstance(call, ir.Call)
                or not _is_parted(loop, guards, function)
            ):
                continue
            names = [item.id for item in target.items if isinstance(item, ir.Name) and item.id != "_"]
            dead = [name for name in names if _is_dead(loop, statement, name)]
            trains = _trains(file, function, call)
            if trains is not None and dead:
                found.append(_bound(statement, dead, trains, _gives(file, function, call, target, dead)))
    return found


def _is_parted(loop: ir.For | ir.While, guards: tuple[ir.Stmt, ...], function: ir.Function) -> bool:
    """Whether each round is a part of a step, or of an update: micro-batches before one optimizer step, mini-batches of one
    rollout."""
    inside = {call.method for _, call in ir.calls(loop.body)}
    outside = {call.method for _, call in ir.calls(function.body)}
    nested = sum(isinstance(guard, (ir.For, ir.While)) for guard in guards) > 1
    return (
        "step" not in inside and bool(outside & {"step", "optimizer_step", "clip_grad_norm", "zero_grad"})
    ) or (
        nested and "batch_size" in {part for name in _words(loop) for part in (name, name.partition("_")[2])}
    )


def _words(loop: ir.For | ir.While) -> Iterator[str]:
    """The names in a loop's head."""
    head = (loop.iterable,) if isinstance(loop, ir.For) else (loop.test,)
    for root in head:
        for part in ir.walk(root):
            if isinstance(part, (ir.Name, ir.Attr)):
                yield (part.path or "").rpartition(".")[2]


def _is_dead(loop: ir.For | ir.While, made: ir.Assign, name: str) -> bool:
    """Whether the loop reads the name nowhere, or under a condition only, and never lets go of it."""
    if made.value is not None and any(part.path == name for part in ir.walk(made.value)):
        return False  # one round's is given to the next
    for statement, guards in with_guards(loop.body, ()):
        if statement is made:
            continue
        used = any(part.path == name for part in ir.own_parts(statement))
        if used and (not guards or isinstance(statement, (ir.Delete, ir.AugAssign))):
            return False
    return True


def _trains(file: FileAnalysis, function: ir.Function, call: ir.Call) -> Answer | None:
    """Whether what is called trains: it, or what it calls in this file, goes backward; or by its name."""
    callee = called(file, function, call)
    if callee is None:
        hint = left_open(Question.TRAINED, f"that `{call.method}` goes backward is told by its name alone")
        return hint if call.method in STEP_METHODS else None
    seen, queue = {callee}, [callee]
    while queue:
        current = queue.pop()
        evidence = file.evidence[current]
        if evidence.backward or evidence.called & {"backward", "manual_backward"}:
            return proven(Question.TRAINED, f"`{callee.name}` goes backward", callee)
        for other in file.module.functions:
            if (
                other not in seen
                and len(seen) < 12
                and other.name in evidence.called
                and other.cls is callee.cls
            ):
                seen.add(other)
                queue.append(other)
    return None


def _gives(
    file: FileAnalysis, function: ir.Function, call: ir.Call, target: ir.Seq, dead: list[str]
) -> Answer:
    """Whether what is bound is more than numbers."""
    callee = called(file, function, call)
    if callee is None:
        return left_open(Question.SIZE, "what it returns is not in sight")
    parts = [part for name in dead for _, _, part in parts_given(function, call, target, name)]
    if parts and all(isinstance(part, ir.Call) and part.method in ("item", "tolist") for part in parts):
        return refuted(Question.TENSOR, "it gives numbers")
    given = {param.name for param in callee.params} - {own_name(callee)}
    for statement in ir.statements(callee.body):
        value = statement.value if isinstance(statement, ir.Return) else None
        if isinstance(value, ir.Seq) and any(
            isinstance(item, ir.Name) and item.id in given for item in value.items
        ):
            return proven(Question.SIZE, "the batch itself is among it", statement)
    return left_open(Question.SIZE, "how large what it returns is, is not shown")


def _bound(statement: ir.Assign, dead: list[str], trains: Answer, gives: Answer) -> Suspicion:
    names = ", ".join(f"`{name}`" for name in dead)
    return Suspicion(
        statement,
        dead[0],
        f"{names} of one update {'stay' if len(dead) > 1 else 'stays'} bound while the next one runs, and nothing in between needs it",
        "a name keeps what it is bound to until it is bound anew, which is after the next update's peak: `del` it",
        "what one update returns, on top of the peak of the next",
        (
            trains,
            gives,
            left_open(Question.GRAPH, "whether a graph or large tensors are behind it is not shown"),
        ),
        Severity.INFO,
    )
