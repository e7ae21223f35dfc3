"""The calls of a function that run a network."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.project.file import Function
from gpulint.analysis.syntax.nodes import arguments

# How methods begin that do other things to a network of a library than run it.
_NO_FORWARD: Final = tuple("save load set get log add init register print update reset to_ from_".split())


@dataclass(frozen=True, slots=True)
class Forward:
    """A call that runs the network `network`, written as `func` or as its base: `net(x)`, `net.encode(x)`."""

    call: ast.Call
    frame: Frame
    network: Value
    expression: Any


def forward_of(evaluator: Evaluator, call: ast.Call, frame: Frame) -> Forward | None:
    """The forward that a call is; None where it is none, or runs what has no weights."""
    func = call.func
    if isinstance(func, ast.Attribute):
        base = evaluator.value_of(func.value, frame)
        if base.kind == "module":
            if evaluator.method(base.ref, func.attr) is not None:
                return None
            row = evaluator.table.own("module", func.attr)
            attribute = evaluator.table.own("module.attributes", func.attr)
            # without an argument it is asked for something, and what nobody takes the result of is something else
            takes = bool(arguments(call)) and not isinstance(frame.flow.parents.get(call), ast.Expr)
            unseen = base.ref is None and takes and not func.attr.startswith(_NO_FORWARD)
            runs = unseen if row is None else row.gives == "forward"
            if runs and (attribute is None or attribute.gives != "module"):
                return Forward(call, frame, base, func.value)
    target = evaluator.value_of(func, frame)
    if target.kind not in ("module", "loaded"):
        return None
    made = evaluator.calling.made_by(target)
    if made is not None and made.weights == "none":
        return None
    return Forward(call, frame, target, func)


def forwards(evaluator: Evaluator, function: Function) -> tuple[Forward, ...]:
    """The forwards of a function, in the order of the text."""
    frame = evaluator.root(function)
    return settled(evaluator, frame, forwards, lambda: tuple(_forwards(evaluator, frame)))  # type: ignore[no-any-return]


def _forwards(evaluator: Evaluator, frame: Frame) -> list[Forward]:
    flow = frame.flow
    reached = (one for one in flow.every_call if flow.statement_of(one) not in flow.unreachable)
    found = [one for call in reached if (one := forward_of(evaluator, call, frame)) is not None]
    return sorted(found, key=lambda one: (one.call.lineno, one.call.col_offset))
