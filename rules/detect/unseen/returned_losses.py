"""Losses of a discriminator that a function gives back with the generator's graph, and whose caller steps the discriminator
alone: the backward goes through the generator for gradients that are zeroed before its own optimizer steps.

Which network is which, and which optimizer steps which, only their names say here: that is left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.sights import sights

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.questions.backward.cutting import cuts_graph
from gpulint.analysis.questions.grad.freezing import switching_words
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, Verdict, doubts_of, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MAKING = frozenset("g gen generator netg".split())
_JUDGING = frozenset("d dis disc discriminator netd critic".split())
_LOSSES = frozenset({"loss", "losses"})
_SWITCHING = frozenset(
    "requires_grad requires_grad_ set_requires_grad toggle_grad no_grad set_grad_enabled detach".split()
)


@dataclass(frozen=True, slots=True)
class ReturnedLoss:
    """The call of a discriminator on what a generator has made with grad; `maker` is the generator's call."""

    function: ir.Function
    call: ir.Call
    given: ir.Expr
    maker: ir.Call
    answers: tuple[Answer, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        return doubts_of(self.answers)

    @property
    def holds(self) -> bool:
        return all(answer.verdict is not Verdict.REFUTED for answer in self.answers)


class ReturnedLosses:
    """The functions of one file that give such a loss back."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file

    @cached_property
    def found(self) -> list[ReturnedLoss]:
        """The first such call of each function, told or not."""
        return [found for one in self._file.module.functions if (found := self._of(one)) is not None]

    def _of(self, function: ir.Function) -> ReturnedLoss | None:
        words = _words(function.name)
        called = self._file.evidence[function].called
        if not (words & _JUDGING and words & _LOSSES) or any(map(runs_backward, called - {"grad"})):
            return None
        made = _made(function)
        for _, call in ir.calls(function.body):
            if _is_of(call, _JUDGING):
                for given in call.args:
                    maker = made.get(given.path or "")
                    if maker is not None:
                        return ReturnedLoss(function, call, given, maker, tuple(self._asked(function, maker)))
        return None

    def _asked(self, function: ir.Function, maker: ir.Call) -> Iterator[Answer]:
        what = maker.func.path or maker.method
        if switching_words((function,), _SWITCHING):
            yield refuted(Question.GRAD, f"`{function.name}` speaks of gradients itself")
            return
        sight = next(one for one in sights(self._file, function) if maker in ir.own_calls(one.statement))
        if sight.grad is not Grad.ENABLED:
            yield refuted(Question.GRAD, "grad may be off here")
            return
        stepped = next(self._stepped(function), None)
        if stepped is None:
            yield refuted(
                Question.BACKWARD, f"no caller of `{function.name}` is seen to step a discriminator alone"
            )
            return
        yield proven(Question.BACKWARD, f"a caller goes backward through what `{function.name}` gives")
        yield left_open(Question.TRAINED, f"only names say that `{stepped}` does not step `{what}`, too")
        yield left_open(Question.GRAPH, f"who steps may have frozen `{what}` for that time")

    def _stepped(self, function: ir.Function) -> Iterator[str]:
        """The optimizers that callers step alone after a backward through the loss, where the generator's gradients are zeroed
        for a step of its own."""
        project = self._file.project
        others = project.files_calling(self._file.filename, function) if project is not None else None
        for home in (self._file, *(others or ())):
            for caller, evidence in home.evidence.items():
                if function.name in evidence.called and not switching_words(
                    (caller,), _SWITCHING - {"no_grad", "detach"}
                ):
                    yield from _stepped_after(caller, function.name)


def _stepped_after(caller: ir.Function, name: str) -> Iterator[str]:
    from_loss: set[str | None] = set()
    gone_back, zeroes = False, False
    stepped: list[str] = []
    alone: list[str] = []
    for statement in ir.statements(caller.body):
        for call in ir.own_calls(statement):
            owner = _spelled(call.func.base) if isinstance(call.func, ir.Attr) else ""
            if call.method == "zero_grad":
                zeroes |= bool(_words(owner) & _MAKING)
            elif runs_backward(call.method) and call.method != "grad":
                alone += stepped if gone_back else []
                gone_back, stepped = bool(_paths(call) & from_loss), []
            elif call.method == "step" and gone_back:
                stepped.append(_spelled(call.args[0]) if call.args else owner)
        bound = {target.path for target in targets(statement)} - {None}
        read = {part.path for part in ir.own_parts(statement)} - {None} - bound
        if any(call.method == name for call in ir.own_calls(statement)) or (bound and read & from_loss):
            from_loss |= bound
        if gone_back and len(stepped) > 1:
            gone_back = False
    alone += stepped if gone_back else []
    if zeroes:
        yield from (one for one in alone if _words(one) & _JUDGING and not _words(one) & _MAKING)


def _made(function: ir.Function) -> dict[str, ir.Call]:
    """The names for what the generator gives, and what is made of it without a cut, each with the generator's call."""
    made: dict[str, ir.Call] = {}
    for statement in ir.statements(function.body):
        if not isinstance(statement, ir.Assign) or statement.value is None:
            continue
        maker = _maker(statement.value, made)
        for target in targets(statement):
            if target.path is not None and maker is not None:
                made[target.path] = maker
            else:
                made.pop(target.path or "", None)
    return made


def _maker(value: ir.Expr, made: dict[str, ir.Call]) -> ir.Call | None:
    """The generator's call that an expression is a plain chain of: its slices, its methods, another name for it."""
    while not cuts_graph(value):
        if isinstance(value, ir.Call) and _is_of(value, _MAKING):
            return value
        if value.path in made:
            return made[value.path]
        if isinstance(value, ir.Call) and isinstance(value.func, ir.Attr):
            value = value.func.base
        elif isinstance(value, ir.Sub):
            value = value.base
        else:
            break
    return None


def _is_of(call: ir.Call, words: frozenset[str]) -> bool:
    """Whether a call is of a network called so: `self.gen(x)`, `D(x)`, `nets.generator(z)`."""
    return bool(call.args) and bool(_words((call.func.path or "").rpartition(".")[2]) & words)


def _words(name: str) -> set[str]:
    """`d` and `loss` of `loss_D`; `opt` and `g` of `self.opt_g`."""
    return set(re.split(r"[^a-z]+", name.lower()))


def _paths(call: ir.Call) -> set[str | None]:
    return {part.path for part in ir.walk(call)} - {None}


def _spelled(expr: ir.Expr) -> str:
    """The path of an optimizer, or of an entry of a table of them: `optimizers['dis']`."""
    if isinstance(expr, ir.Sub) and isinstance(expr.index, ir.Const):
        return f"{expr.base.path or ''}[{expr.index.value!r}]"
    return expr.path or ""
