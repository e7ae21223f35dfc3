"""Tensors that hooks have stored on an object and that stay there after the hooks are removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.hooked import Store, stores
from gpulint.rules.detect.lifetimes.reaching_back import own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets
from gpulint.answers import Question, left_open, proven

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def left_behind(file: FileAnalysis) -> list[Suspicion]:
    """Methods that remove the object's hooks and leave what these have stored."""
    found: list[Suspicion] = []
    by_owner: dict[ir.Class, list[Store]] = {}
    for store in stores(file):
        owner = owner_of(store.hook)
        own = own_name(store.hook)
        heavy = store.kept.graph or (store.kept.device and not store.kept.reduced)
        if owner is not None and heavy and store.place.startswith(f"{own}."):
            by_owner.setdefault(owner, []).append(store)
    for owner, kept in by_owner.items():
        for method in owner.methods.values():
            found += _leaving(file, owner, method, kept)
    return found


def _leaving(
    file: FileAnalysis, owner: ir.Class, method: ir.Function, kept: list[Store]
) -> Iterator[Suspicion]:
    removal = _removal(method)
    if removal is None or method.name in ("__init__", "__del__", "forward", "__call__"):
        return
    emptied = {path.rpartition(".")[2].partition("[")[0] for path in _emptied(owner, method)}
    words = file.evidence[method].words
    left = [store for store in kept if store.word not in emptied and store.word not in words]
    if not left or any(isinstance(s, ir.Return) and s.value is not None for s in ir.statements(method.body)):
        return
    store = left[0]
    answers = [
        proven(Question.SIZE, "a tensor on the device, or its graph", store.stmt),
        left_open(
            Question.OUTLIVES, "whether the object is kept after this, or read once more, is not shown"
        ),
    ]
    if not store.kept.sure:
        answers.append(
            left_open(Question.TENSOR, "what the hook makes of its tensor is not in sight", store.stmt)
        )
    yield Suspicion(
        removal,
        store.place,
        f"the hooks are removed here, and what they have stored in `{store.place}` stays",
        "removing a handle frees the hook and nothing of what it has kept",
        "the last activations, and the graph behind those that have one, as long as the object lives",
        tuple(answers),
        cause=store.stmt.row,
    )


def _removal(method: ir.Function) -> ir.Stmt | None:
    """`handle.remove()`: a call without arguments."""
    for statement, call in ir.calls(method.body):
        if call.method == "remove" and not call.args and not call.keywords and isinstance(call.func, ir.Attr):
            return statement
    return None


def _emptied(owner: ir.Class, method: ir.Function) -> Iterator[str]:
    """What a method and those that it calls on the object start afresh."""
    yield from resets(method.body)
    own = own_name(method)
    for _, call in ir.calls(method.body):
        if isinstance(call.func, ir.Attr) and call.func.base.path == own and call.method in owner.methods:
            yield from resets(owner.methods[call.method].body)
