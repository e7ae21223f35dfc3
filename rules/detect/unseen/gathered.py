"""Outputs that pile up on the device where the interpreter has lost sight of them: what a call out of sight gives is put
into a list, round after round, and made one tensor, or moved, only at the end.

The end is the evidence: who says `torch.cat(outputs).cpu()` has had tensors on the device, all of them at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.drains import Drain, Drains
from gpulint.rules.detect.unseen.leaves import SMALL, Leaf, Leaves
from gpulint.rules.detect.unseen.looking import looks_only
from gpulint.rules.detect.unseen.sights import Sight, sights

from gpulint.analysis.code import ir
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.methods import ADDING
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, Verdict, doubts_of, left_open, proven, refuted, until_refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST = 3
_ROUNDS = re.compile(
    r"(?i)^(?:t?range|count|iter)$|(?:^|_)p?bar$|progress|batch|loader|iterator|sampler|chunk"
)
_GPU = ("cuda", "gpu", "device", "accelerat")


@dataclass(frozen=True, slots=True)
class Gathering:
    """Something is put into a container, with what is known of it."""

    function: ir.Function
    at: ir.Expr | ir.Stmt
    holder: str
    leaf: ir.Expr
    answers: tuple[Answer, ...]
    to_host: bool = False  # it is moved to the host where it ends
    is_made_here: bool = False  # the call that makes what is put there stands in the function

    @property
    def doubts(self) -> tuple[str, ...]:
        return doubts_of(self.answers)

    @property
    def holds(self) -> bool:
        refuting = any(answer.verdict is Verdict.REFUTED for answer in self.answers)
        return not refuting and len(self.doubts) <= _MOST


@dataclass(frozen=True, slots=True)
class _Put:
    sight: Sight
    at: ir.Expr | ir.Stmt
    holder: ir.Expr  # the container, subscripts taken off
    what: tuple[ir.Expr, ...]


class Gathered:
    """What the functions of one file gather."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._leaves = Leaves(file)
        self._drains = Drains(file)

    @cached_property
    def found(self) -> list[Gathering]:
        """Every container that is filled round after round, told or not."""
        if not self._file.uses_torch or not self._names_gpu:
            return []
        return [one for function in self._file.module.functions for one in self._of(function)]

    @cached_property
    def _names_gpu(self) -> bool:
        words = {
            word.lower()
            for evidence in self._file.evidence.values()
            for word in evidence.words | evidence.strings
        }
        return any(part in word for word in words for part in _GPU)

    def _of(self, function: ir.Function) -> Iterator[Gathering]:
        evidence = self._file.evidence[function]
        if not evidence.accumulates or function.name in ("forward", "__init__"):
            return
        around = sights(self._file, function)
        for sight in around:
            for put in _puts(sight):
                one = self._considered(function, put, around)
                if one is not None:
                    yield one

    def _considered(self, function: ir.Function, put: _Put, around: list[Sight]) -> Gathering | None:
        drain = self._drains.of(function, put.holder, put.sight)
        if drain is None:
            return None
        leaves = [
            leaf for item in put.what if (leaf := self._leaves.of(function, put.sight, item)) is not None
        ]
        if not leaves:
            return None
        makers = [leaf.maker for leaf in leaves if leaf.maker is not None]
        off = any(
            sight.grad is Grad.DISABLED and maker in ir.own_calls(sight.statement)
            for maker in makers
            for sight in around
        )
        guarded = off and put.sight.grad is not Grad.DISABLED  # for what makes it, and not for the rest
        if off:
            put = replace(put, sight=replace(put.sight, grad=Grad.DISABLED))
        best = min(leaves, key=lambda leaf: (not leaf.runs, leaf.maker is None, leaf.doubt is not None))
        answers = until_refuted(self._asked(function, put, best, drain, guarded))
        made = best.maker is not None
        return Gathering(function, put.at, put.holder.path or "", best.expr, answers, drain.to_host, made)

    # --- the questions -------------------------------------------------------------------------------------------

    def _asked(
        self, function: ir.Function, put: _Put, leaf: Leaf, drain: Drain, guarded: bool
    ) -> Iterator[Answer]:
        holder = f"`{put.holder.path}`"
        yield from self._trained(function, put.sight, drain)
        if leaf.on_host:
            yield refuted(Question.DEVICE, "it is moved to the host before it is kept")
        if drain.on_host:
            yield refuted(
                Question.DEVICE, "it becomes an array as it is: torch refuses that on a GPU", drain.at
            )
        if drain.small or leaf.small or SMALL.search(put.holder.path or ""):
            yield refuted(Question.SIZE, "one number a round")
        yield from _repeats(self._file, put, drain)
        if leaf.maker is None and not (drain.to_host and drain.elsewhere):
            yield refuted(Question.TENSOR, "nothing shows what is kept")
        if not (leaf.runs or drain.to_host):
            if not (guarded and drain.joined):
                yield refuted(
                    Question.TENSOR, "nothing shows that a network has made it, nor that it was on a device"
                )
            yield left_open(
                Question.TENSOR, "only `no_grad` around it says that a network has made it", leaf.maker
            )
        if not drain.joined and leaf.doubt is not None and len(put.what) < 2:
            yield refuted(Question.TENSOR, "nothing shows that tensors are kept")
        if not drain.joined:
            yield proven(Question.READS, f"the items of {holder} are only looked at, one by one", drain.at)
        elif drain.to_host:
            yield proven(
                Question.READS, f"{holder} is made one tensor on the device, and then moved", drain.at
            )
        else:
            yield left_open(
                Question.READS, f"what {holder} is made into may be needed on the device", drain.at
            )
        yield from _made(leaf, drain)

    def _trained(self, function: ir.Function, sight: Sight, drain: Drain) -> Iterator[Answer]:
        """Whether a backward may want what is kept."""
        trains = any(map(runs_backward, self._file.evidence[function].called))
        if sight.grad is Grad.DISABLED:
            yield proven(Question.GRAPH, "grad is off here: it has no graph")
        elif trains:
            yield refuted(Question.BACKWARD, "the function goes backward")
        elif (not drain.cut or not drain.to_host) and (why := looks_only(function, sight)):
            yield left_open(Question.BACKWARD, why)
        elif not drain.cut or not drain.to_host:
            yield refuted(
                Question.BACKWARD, "grad may be on here, and nothing shows that nobody goes backward"
            )
        else:
            yield proven(Question.BACKWARD, "it is detached, or becomes an array, where it ends", drain.at)


def _repeats(file: FileAnalysis, put: _Put, drain: Drain) -> Iterator[Answer]:
    loops = [loop for one in put.sight.loops if (loop := file.loops.get(id(one))) is not None]
    if any((loop.over_data and not loop.over_pairs) or loop.counts_all for loop in loops):
        yield proven(Question.REPEATS, "each round is a batch")
    elif not put.sight.loops and not drain.elsewhere:
        yield refuted(Question.REPEATS, "no loop runs it")
    elif any(loop.is_fixed for loop in loops):
        yield refuted(Question.REPEATS, "as many rounds as the text says")
    elif drain.elsewhere or any(_counts(loop) for loop in put.sight.loops):
        yield left_open(Question.REPEATS, "how many rounds it collects is not seen")
    else:
        yield refuted(Question.REPEATS, "the loop goes through things that may be few")


def _counts(loop: ir.For | ir.While) -> bool:
    """`while …`, `for i in range(n)`, `for i in tqdm(range(n))`, `for i in bar`: rounds, and no list of things."""
    if isinstance(loop, ir.While):
        return True
    words = [part.attr if isinstance(part, ir.Attr) else part.path or "" for part in ir.walk(loop.iterable)]
    return any(_ROUNDS.search(word) for word in words)


def _made(leaf: Leaf, drain: Drain) -> Iterator[Answer]:
    if leaf.doubt is not None:
        yield left_open(Question.SIZE, leaf.doubt, leaf.maker)
    else:
        yield proven(Question.SIZE, "a network's output of a batch", leaf.maker)
    if not drain.joined:
        yield left_open(Question.TENSOR, "nothing shows that tensors are kept", drain.at)


def _puts(sight: Sight) -> Iterator[_Put]:
    statement = sight.statement
    if isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        if call.method in ADDING and isinstance(call.func, ir.Attr) and call.args:
            yield _Put(sight, call, _container(call.func.base), tuple(_items(call.args[-1])))
    elif isinstance(statement, ir.AugAssign) and statement.op.startswith("+"):
        if isinstance(statement.value, ir.Seq) and statement.value.kind in ("list", "tuple"):
            yield _Put(sight, statement, _container(statement.target), tuple(_items(statement.value)))


def _container(expr: ir.Expr) -> ir.Expr:
    while isinstance(expr, ir.Sub):
        expr = expr.base
    return expr


def _items(expr: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(expr, ir.Seq):
        for item in expr.items:
            yield from _items(item)
    elif isinstance(expr, ir.DictDisplay):
        for _, value in expr.pairs:
            yield from _items(value)
    else:
        yield expr
