"""Losses that compare what a network of a library sees in two pictures, and never freeze it: the one that is compared with
gets a graph as well, and each backward gives the weights gradients that nobody uses.

That nobody trains the network only the class's name says, and whoever makes the loss may freeze it: both are left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.lookup import class_made, qualified
from gpulint.analysis.questions.grad.freezing import switching_words
from gpulint.analysis.torch import frameworks
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, Verdict, doubts_of, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_LOSS = re.compile(r"(?i)loss|percep|criterion")
_OTHER_PARTS = re.compile(r"(?i)loss|crit|norm|mse|l1|l2|dist|weight|gram|mean|scale|resize|pool|pre")
_SWITCHING = frozenset(
    "requires_grad requires_grad_ set_requires_grad freeze no_grad inference_mode detach set_grad_enabled".split()
)


@dataclass(frozen=True, slots=True)
class LossNetwork:
    """The call by which a loss runs its network on what it compares with; `maker` makes the network."""

    function: ir.Function
    call: ir.Call
    path: str
    maker: ir.Call
    answers: tuple[Answer, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        return doubts_of(self.answers)

    @property
    def holds(self) -> bool:
        return all(answer.verdict is not Verdict.REFUTED for answer in self.answers)


class LossNetworks:
    """The calls of such networks in one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file

    @cached_property
    def found(self) -> list[LossNetwork]:
        """One call of each loss that may be such, told or not."""
        losses = [
            one
            for name, one in self._file.classes.items()
            if one.is_module and _LOSS.search(name) is not None
        ]
        return [found for one in losses if (found := self._of(one)) is not None]

    def _of(self, info: ClassInfo) -> LossNetwork | None:
        made, forward = info.cls.methods.get("__init__"), info.cls.methods.get("forward")
        again = _run_again(forward) if forward is not None else None
        if made is None or forward is None or again is None or again.func.path is None:
            return None
        for _, call in ir.calls(made.body):
            inner = class_made(made, call)
            if _is_pretrained(made, call) or (inner is not None and _holds_pretrained(inner)):
                answers = tuple(self._asked(info, inner, forward, call))
                return LossNetwork(forward, again, again.func.path, call, answers)
        return None

    def _asked(
        self, info: ClassInfo, inner: ClassInfo | None, forward: ir.Function, maker: ir.Call
    ) -> Iterator[Answer]:
        name, owner = maker.method, info.cls.name
        yield proven(Question.GRAPH, f"`{name}` is made with its weights, which want gradients", maker)
        if self._file.grad_at_entry(forward) is Grad.DISABLED:
            yield refuted(Question.GRAD, f"grad is off where `{owner}` runs")
        classes = [*info.lineage(), *(inner.lineage() if inner is not None else ())]
        methods = [method for one in classes for method in one.cls.methods.values()]
        users = [function for function, evidence in self._file.evidence.items() if owner in evidence.words]
        if switching_words((*methods, *users), _SWITCHING):
            yield refuted(Question.TRAINED, f"`{owner}`, or who makes it, speaks of gradients itself")
            return
        yield left_open(Question.TRAINED, f"only its name says that nobody trains what `{owner}` holds")
        yield left_open(Question.GRAPH, f"whoever makes a `{owner}` may freeze it, or run it without grad")


def _run_again(forward: ir.Function) -> ir.Call | None:
    """The second call of the same part of the object, or of the same layer of a loop over one, on something else."""
    own = forward.params[0].name if forward.params else ""
    looped = {
        target.path
        for statement in ir.statements(forward.body)
        if isinstance(statement, ir.For) and any(part.path == own for part in ir.walk(statement.iterable))
        for target in targets(statement)
    }
    first: dict[str, set[str]] = {}
    in_order = [call for one in ir.statements(forward.body) for call in reversed(list(ir.own_calls(one)))]
    for call in in_order:
        path = call.func.path
        if path is None or not (path.startswith(f"{own}.") or path in looped) or _OTHER_PARTS.search(path):
            continue
        given = {part.id for arg in call.args for part in ir.walk(arg) if isinstance(part, ir.Name)} - {own}
        if path in first and given and not given & first[path]:
            return call
        first.setdefault(path, given)
    return None


def _holds_pretrained(info: ClassInfo) -> bool:
    made = info.cls.methods.get("__init__")
    return (
        info.is_module
        and made is not None
        and any(_is_pretrained(made, call) for _, call in ir.calls(made.body))
    )


def _is_pretrained(function: ir.Function, call: ir.Call) -> bool:
    """`vgg19(pretrained=True)`, `resnet50(weights="DEFAULT")`."""
    full = qualified(function.home, function, call.func.path)
    if full is None or not full.startswith(("torchvision.models.", "timm.")):
        return False
    given = [*call.args[:1], call.keyword("pretrained"), call.keyword("weights")]
    loaded = any(one is not None and not (isinstance(one, ir.Const) and not one.value) for one in given)
    return loaded and frameworks.constructor(full) == "module"
