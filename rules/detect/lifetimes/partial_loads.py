"""Whole checkpoints that `torch.load` brings back to a GPU for a part of them: an optimizer's state, the number of an epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.checkpoints import saves_optimizers
from gpulint.rules.detect.lifetimes.suspicion import Suspicion
from gpulint.rules.detect.lifetimes.unmapped_loads import (
    COST,
    Loading,
    by_ranks,
    callers,
    is_absent,
    loadings,
    name_of,
    saved_from_gpu,
    works_with_gpu,
)

from gpulint.analysis.code import ir
from gpulint.analysis.code.loaded import is_plain_word, parents_of, uses_of
from gpulint.answers import Answer, Question, left_open, proven, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# What only a training's checkpoint has beside the weights: what takes such an entry takes it of all of them.
_OF_TRAINING = re.compile(r"(?i)optim|sched|scaler|epoch|step")

_OF_WEIGHT = re.compile(r"(?i)optim")  # the entry that shows that it is large


def partial_loads(file: FileAnalysis) -> list[Suspicion]:
    """The loads of a file of which nothing is taken but what is not the weights."""
    found: list[Suspicion] = []
    for load in loadings(file):
        taken = _taken(load) if is_absent(load.call) else None
        if taken and any(map(_OF_TRAINING.search, taken)) and works_with_gpu(file, load):
            found.append(_suspicion(file, load, taken))
    return found


def _taken(load: Loading) -> list[str] | None:
    """The entries that are taken of what is loaded; None where something else may be done with it."""
    name = name_of(load)
    if name is None or (isinstance(load.stmt, ir.Assign) and load.stmt.value is not load.call):
        reads: list[tuple[ir.Stmt, ir.Expr]] = [(load.stmt, load.call)]
    else:
        reads = [(use.stmt, use.expr) for use in uses_of(load.function, {name}, load.stmt)]
    found: list[str] = []
    for statement, read in reads:
        if isinstance(statement, ir.Delete) or _only_asks(statement, read):
            continue
        word = _entry(statement, read)
        if word is None or not (is_plain_word(word) or _OF_TRAINING.search(word)):
            return None
        found.append(word)
    return found


def _only_asks(statement: ir.Stmt, read: ir.Expr) -> bool:
    """`"optimizer" in checkpoint`."""
    around = parents_of(statement).get(id(read))
    return isinstance(around, ir.Op) and around.op in ("in", "not in")


def _entry(statement: ir.Stmt, read: ir.Expr) -> str | None:
    """`epoch` of `checkpoint["epoch"]` and `checkpoint.pop("epoch")`, the name of the key where it has one."""
    parents = parents_of(statement)
    around = parents.get(id(read))
    key: ir.Expr | None = None
    if isinstance(around, ir.Sub) and around.base is read:
        key = around.index
    elif isinstance(around, ir.Attr) and around.attr in ("get", "pop"):
        call = parents.get(id(around))
        key = call.args[0] if isinstance(call, ir.Call) and call.func is around and call.args else None
    if isinstance(key, ir.Const):
        return key.value if isinstance(key.value, str) else None
    return key.path if key is not None else None


def _suspicion(file: FileAnalysis, load: Loading, taken: list[str]) -> Suspicion:
    ranks = by_ranks(file, load)
    what = _in_words(taken)
    return Suspicion(
        load.call,
        "torch.load",
        "every rank loads all of the checkpoint onto the GPU it was saved from, which is one and the same for all"
        if ranks
        else f"all of the checkpoint comes back to the GPU it was saved from, and only {what} is taken of it",
        f"no `map_location` is given, and only {what} is taken of it" if ranks else "no `map_location` is given",
        COST,
        tuple(_answers(file, load, taken, ranks)),
    )


def _in_words(taken: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in list(dict.fromkeys(taken))[:3])


def _answers(file: FileAnalysis, load: Loading, taken: list[str], ranks: bool) -> Iterator[Answer]:
    yield proven(Question.READS, f"nothing but {_in_words(taken)} is taken of it")
    yield saved_from_gpu(file, saves_optimizers, callers(file, load.function))
    if ranks:
        yield proven(Question.REACHED, "it is of a program of several processes")
        if not any(map(_OF_WEIGHT.search, taken)):
            yield unweighed(Question.SIZE, "how large it is, the code does not say")
    else:
        yield left_open(Question.OUTLIVES, "no step is seen to run before it is let go of")
