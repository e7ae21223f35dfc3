"""What expressions over constants come to: numbers, texts, lists and tables of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpulint.analysis.code import ir
from gpulint.analysis.questions.size.built import UNKNOWN, Scope

MOST_ROUNDS = 64  # of a loop, and items of a list that is written as a product
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a**b if abs(b) < 32 else 0,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_PLAIN: Mapping[str, Callable[..., object]] = {
    "int": int, "float": float, "len": len, "max": max, "min": min, "sum": sum, "list": list, "tuple": tuple,
}  # fmt: skip


def builtin(name: str, positional: list[object]) -> object:
    if any(value is UNKNOWN for value in positional):
        return UNKNOWN
    if name == "range":
        numbers = [value for value in positional if isinstance(value, int)]
        return range(*numbers) if 0 < len(numbers) == len(positional) <= 3 else UNKNOWN
    if name in ("zip", "enumerate", "reversed"):
        through = [list(value) for value in positional if isinstance(value, (list, tuple, range))]
        if len(through) != len(positional) or not through:
            return UNKNOWN
        if name == "reversed":
            return through[0][::-1]
        return list(enumerate(through[0])) if name == "enumerate" else list(zip(*through, strict=False))
    return _PLAIN[name](*positional) if name in _PLAIN and positional else UNKNOWN


def flat(values: Sequence[object]) -> list[object]:
    found: list[object] = []
    for value in values:
        found += flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def bind(target: ir.Expr, value: object, scope: Scope) -> None:
    if isinstance(target, ir.Name):
        scope.names[target.id] = value
    elif isinstance(target, ir.Attr) and target.path is not None:
        scope.own[target.path.partition(".")[2]] = value
    elif isinstance(target, ir.Seq):
        items = value if isinstance(value, (list, tuple)) and len(value) == len(target.items) else None
        for position, part in enumerate(target.items):
            bind(part, items[position] if items is not None else UNKNOWN, scope)


def item_of(base: object, index: object) -> object:
    if isinstance(base, (list, tuple)) and isinstance(index, int) and -len(base) <= index < len(base):
        return base[index]
    if isinstance(base, dict) and isinstance(index, (str, int)):
        return base.get(index, UNKNOWN)
    return UNKNOWN


def computed(op: str, values: list[object]) -> object:
    if op in ("and", "or"):
        ends = op == "or"
        for value in values:
            if value is not UNKNOWN and bool(value) is ends:
                return value
        return UNKNOWN if UNKNOWN in values else values[-1]
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    if op == "not":
        return not values[0]
    if op in ("is", "is not"):
        return (values[0] is values[1]) is (op == "is")
    if op in ("in", "not in") and isinstance(values[1], (list, tuple, str, dict)):
        try:
            return (values[0] in values[1]) is (op == "in")
        except TypeError:
            return UNKNOWN
    if op == "neg" and isinstance(values[0], (int, float)):
        return -values[0]
    return _arithmetic(op, values)


def _arithmetic(op: str, values: list[object]) -> object:
    left, right = values if len(values) == 2 else (UNKNOWN, UNKNOWN)
    if op in ("==", "!="):
        return (left == right) is (op == "==")
    if op == "+" and isinstance(left, list) and isinstance(right, list):
        return left + right
    if op == "*" and isinstance(left, list) and isinstance(right, int) and right <= MOST_ROUNDS:
        return left * right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and op in _ARITHMETIC:
        try:
            return _ARITHMETIC[op](left, right)
        except (ZeroDivisionError, OverflowError):
            return UNKNOWN
    return UNKNOWN
