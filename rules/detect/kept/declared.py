"""What the text declares: parameters by annotation, and the buffers and parameters of a class."""

from __future__ import annotations

from collections.abc import Iterator

from gpulint.rules.detect.kept.traced import OPEN, PROVEN, REFUTED

from gpulint.analysis.code import ir
from gpulint.answers import Verdict

_NUMERIC = frozenset("int float bool str Path dict Dict ndarray".split())


def by_annotation(param: ir.Param) -> Verdict:
    """What a parameter is, by its annotation or its default."""
    if param.annotation is None:
        default = param.default
        counts = isinstance(default, ir.Const) and default.value is not None and default.value is not ...
        return REFUTED if counts else OPEN
    words = {
        (part.path or "").rpartition(".")[2]
        if not isinstance(part, ir.Const)
        else str(part.value).rpartition(".")[2].strip("]'\" ")
        for part in ir.walk(param.annotation)
    }
    if any(word.endswith("Tensor") or word == "TensorType" for word in words):
        return PROVEN
    return REFUTED if words & _NUMERIC and "Any" not in words else OPEN


def registered(cls: ir.Class, how: str) -> frozenset[str]:
    """The attributes of a class that are buffers (`register_buffer`) or parameters (`Parameter`)."""
    return frozenset(_registered(cls, how))


def _registered(cls: ir.Class, how: str) -> Iterator[str]:
    for method in cls.methods.values():
        for statement in ir.statements(method.body):
            for call in ir.own_calls(statement):
                if call.method != how:
                    continue
                name = call.argument(0, "name")
                if how.startswith("register") and isinstance(name, ir.Const) and isinstance(name.value, str):
                    yield name.value
                elif isinstance(statement, ir.Assign) and not _is_off(call.keyword("requires_grad")):
                    yield from (target.attr for target in statement.targets if isinstance(target, ir.Attr))


def _is_off(flag: ir.Expr | None) -> bool:
    return isinstance(flag, ir.Const) and flag.value is False
