"""Single samples kept as views: each holds the storage of its whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.network_copies import with_guards
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.lookup import with_words
from gpulint.analysis.flow.peaks import loop_names
from gpulint.answers import Answer, Question, left_open, proven, refuted
from gpulint.findings import Severity

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_COPIES = frozenset({"clone", "cpu", "numpy", "tolist", "item", "cuda", "contiguous", "float"})
_TENSOR_METHODS = frozenset(
    {"numpy", "cuda", "cpu", "to", "size", "view", "long", "float", "unsqueeze", "tolist", "item", "detach"}
)


# --- a batch's labels, one by one -------------------------------------------------------------------------------------


def extended_lists(file: FileAnalysis) -> list[Suspicion]:
    """`ids.extend(batch_ids)` in a loop over a loader: as many views as there are samples."""
    found: list[Suspicion] = []
    for function in with_words(file, frozenset({"extend"})):
        for statement, guards in with_guards(function.body, ()):
            loop = next((g for g in reversed(guards) if isinstance(g, ir.For)), None)
            call = statement.value if isinstance(statement, ir.ExprStmt) else None
            if (
                loop is None
                or not isinstance(call, ir.Call)
                or call.method != "extend"
                or len(call.args) != 1
            ):
                continue
            given, holder = call.args[0], call.func.base.path if isinstance(call.func, ir.Attr) else None
            if (
                holder is None
                or not isinstance(given, (ir.Name, ir.Sub))
                or not _is_of_batch(file, loop, given)
            ):
                continue
            found.append(_extended(function, loop, call, holder, given))
    return found


def _is_of_batch(file: FileAnalysis, loop: ir.For, given: ir.Expr) -> bool:
    """Whether a value comes out of the loop's batch as the loader gave it."""
    facts = file.loops.get(id(loop))
    if facts is None or not (facts.over_loader or facts.over_data) or given.path is None:
        return False
    root = given
    while isinstance(root, ir.Sub):
        root = root.base
    return isinstance(root, ir.Name) and root.id in loop_names(loop)


def _extended(function: ir.Function, loop: ir.For, call: ir.Call, holder: str, given: ir.Expr) -> Suspicion:
    name = given.path or ""
    return Suspicion(
        call,
        holder,
        f"`{holder}` gets one view of `{name}` for each sample, and each holds the storage of its whole batch",
        f"a tensor that a list is extended with is taken apart into tensors: extend it with `{name}.tolist()`",
        "a tensor object for each sample, and of a worker's batch the shared memory that it came in",
        tuple(_extended_answers(function, loop, holder, name)),
        Severity.INFO,
    )


def _extended_answers(function: ir.Function, loop: ir.For, holder: str, name: str) -> Iterator[Answer]:
    tensor = moved = False
    for statement in ir.statements(loop.body):
        for call in ir.own_calls(statement):
            if isinstance(call.func, ir.Attr) and call.func.base.path == name:
                tensor |= call.method in _TENSOR_METHODS
                moved |= call.method in ("cuda", "to")
        if isinstance(statement, ir.Assign) and any(target.path == name for target in targets(statement)):
            value = statement.value
            if isinstance(value, ir.Call) and value.method in (
                "tolist",
                "numpy",
                "list",
                "split",
                "decode",
                "batch_decode",
            ):
                yield refuted(Question.TENSOR, f"`{name}` is made a list or an array before", statement)
    if not tensor and not _batch_has_tensors(loop):
        yield refuted(Question.TENSOR, "nothing of the batch is treated as a tensor")
    yield (
        proven(Question.TENSOR, f"`{name}` is asked for what only tensors have")
        if tensor
        else left_open(Question.TENSOR, f"whether `{name}` comes as a tensor or as a list is not shown")
    )
    if not moved:
        yield left_open(Question.SIZE, "whether worker processes load the batches is not shown")
    for statement in ir.statements(function.body):
        for call in ir.own_calls(statement):
            if call.method in ("stack", "cat") and call.args and call.args[0].path == holder:
                yield refuted(Question.READS, "the views are joined again", statement)


def _batch_has_tensors(loop: ir.For) -> bool:
    names = loop_names(loop)
    return any(
        call.method in ("cuda", "to") and isinstance(call.func, ir.Attr) and call.func.base.path in names
        for _, call in ir.calls(loop.body)
    )
