"""Parameters for which a caller gives a constant, `train=False`, `"val"`, and the tests that they decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from gpulint.analysis.code import ir
from gpulint.analysis.values.arguments import bind_sources


class _NoText:
    """Something of which no more is known than that it equals no text, and is true."""


NO_TEXT = _NoText()
Constant: TypeAlias = "bool | str | int | _NoText | None"
Constants: TypeAlias = Mapping[str, Constant]

NO_CONSTANTS: Constants = {}
_UNKNOWN = object()
_MOST = 4  # constants of one call: each combination is followed once more


def given_constants(
    function: ir.Function,
    call: ir.Call,
    is_method: bool,
    known: Constants,
    assigned: frozenset[str] | set[str],
) -> Constants:
    """The constants that a call gives a function's parameters, or leaves at their defaults; `known` are the caller's
    own, `assigned` the names that the function binds anew. Truth values and words alone: a number decides no mode."""
    sources = bind_sources(function, call, is_method)
    if any(isinstance(argument, ir.Starred) for argument in call.args) or any(
        n is None for n, _ in call.keywords
    ):
        return NO_CONSTANTS
    found: dict[str, Constant] = {}
    for param in function.params:
        source = sources.get(param.name, param.default)
        value = _value(source, known) if source is not None and param.name not in assigned else _UNKNOWN
        if isinstance(value, (bool, str)):
            found[param.name] = value
    return found if len(found) <= _MOST else {k: v for k, v in found.items() if isinstance(v, bool)}


def truth(test: ir.Expr | None, constants: Constants) -> bool | None:
    """What a test comes to where the constants decide it; None where they do not."""
    if test is None:
        return None
    value = _value(test, constants)
    return None if value is _UNKNOWN else bool(value)


def _value(expr: ir.Expr, constants: Constants) -> object:
    if isinstance(expr, ir.Const):
        return expr.value
    if isinstance(expr, (ir.Name, ir.Attr)):
        return constants.get(expr.path or "", _UNKNOWN)
    if isinstance(expr, ir.Seq):
        items = tuple(_value(item, constants) for item in expr.items)
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else items
    if isinstance(expr, ir.Op):
        return _operation(expr, constants)
    return _UNKNOWN


def _operation(expr: ir.Op, constants: Constants) -> object:
    values = [_value(operand, constants) for operand in expr.operands]
    if expr.op in ("and", "or"):
        ends = expr.op == "or"
        if any(value is not _UNKNOWN and bool(value) is ends for value in values):
            return ends
        return _UNKNOWN if _UNKNOWN in values else not ends
    if _UNKNOWN in values or (NO_TEXT in values and not _is_compared_to_texts(values)):
        return _UNKNOWN
    if expr.op == "not":
        return not values[0]
    if expr.op in ("==", "is") and len(values) == 2:
        return values[0] == values[1]
    if expr.op in ("!=", "is not") and len(values) == 2:
        return values[0] != values[1]
    if expr.op in ("in", "not in") and isinstance(values[1], tuple):
        return (values[0] in values[1]) is (expr.op == "in")
    return _UNKNOWN


def _is_compared_to_texts(values: list[object]) -> bool:
    """Whether what equals no text stands beside nothing but texts."""
    others = [
        part
        for value in values
        for part in (value if isinstance(value, tuple) else (value,))
        if part is not NO_TEXT
    ]
    return len(values) == 2 and all(isinstance(part, str) for part in others) and bool(others)
