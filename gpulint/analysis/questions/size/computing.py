"""What expressions over constants come to: numbers, texts, lists and tables of them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import LINKS
from gpulint.analysis.questions.size.built import UNKNOWN, Built, Scope

MOST_ROUNDS = 64  # of a loop, and items of a list that is written as a product
_MOST_ITEMS = 4_096  # of a list, letters of a text; more is nothing that a constructor needs
_MOST = 10**18
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a**b if abs(b) < 32 else 0,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_PLAIN: Mapping[str, Callable[..., object]] = {
    "int": int, "float": float, "len": len, "max": max, "min": min, "sum": sum, "list": list, "tuple": tuple,
    "round": round, "abs": abs, "bool": bool, "str": str, "sorted": sorted, "any": any, "all": all,
}  # fmt: skip
BUILTINS = frozenset({*_PLAIN, "range", "zip", "enumerate", "reversed", "dict", "getattr", "isinstance"})
_WIDE = re.compile(r"\d{4}|\*")  # widths in a text that is filled in
_OF_MATH = frozenset("ceil floor sqrt log log2 prod pow exp".split())
_OF_TEXT = frozenset("lower upper strip split startswith endswith replace format".split())
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "int": int, "float": float, "str": str, "list": list, "tuple": tuple, "dict": dict, "bool": bool,
    "Iterable": (list, tuple, dict, str), "Sequence": (list, tuple, str),
}  # fmt: skip


def builtin(name: str, positional: list[object]) -> object:
    """What one of Python's own functions gives. Raises `TypeError` and `ValueError` as these do."""
    if any(value is UNKNOWN or not is_bounded(value) for value in positional):
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
    if name in ("list", "tuple", "dict") and not positional:
        return {} if name == "dict" else []
    return _PLAIN[name](*positional) if name in _PLAIN and positional else UNKNOWN


def is_of_kind(value: object, kind: str) -> object:
    """`isinstance(value, int)`, of a constant."""
    known, last = isinstance(value, (int, float, str, list, tuple, dict)), kind.rpartition(".")[2]
    return isinstance(value, _KINDS[last]) if known and last in _KINDS else UNKNOWN


def of_math(name: str, positional: list[object]) -> object:
    """What a function of `math` or of numpy gives for numbers."""
    numbers = [value for value in flat(positional) if isinstance(value, (int, float))]
    if name not in _OF_MATH or len(numbers) != len(flat(positional)) or not numbers:
        return UNKNOWN
    try:
        return bounded(math.prod(numbers) if name == "prod" else getattr(math, name)(*numbers))
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN


def of_method(base: object, name: str, positional: list[object]) -> object:
    """What a method of a list, a table or a text gives; those that change a list do so."""
    first = positional[0] if positional else UNKNOWN
    if isinstance(base, list):
        return _of_list(base, name, positional)
    if isinstance(base, dict):
        if name == "get" and isinstance(first, (str, int)):
            return base.get(first, positional[1] if len(positional) > 1 else None)
        whole = {"items": list(base.items()), "values": list(base.values()), "keys": list(base)}
        return whole.get(name, dict(base) if name == "copy" else UNKNOWN)
    if isinstance(base, str) and name in _OF_TEXT and UNKNOWN not in positional and not _WIDE.search(base):
        try:
            return bounded(getattr(base, name)(*positional))
        except (TypeError, ValueError, LookupError):
            return UNKNOWN
    return UNKNOWN


def _of_list(base: list[object], name: str, positional: list[object]) -> object:
    if name == "copy":
        return list(base)
    if name in ("append", "insert") and not (positional and is_bounded([*base, positional[-1]])):
        return UNKNOWN
    if name == "append":
        base.append(positional[0])
    elif name == "extend" and positional and isinstance(positional[0], (list, tuple)):
        if is_bounded([*base, *positional[0]]):
            base.extend(positional[0])
    elif name == "insert" and len(positional) == 2 and isinstance(positional[0], int):
        base.insert(positional[0], positional[1])
    elif name == "pop" and base:
        return base.pop()
    elif name == "index" and positional and positional[0] in base:
        return base.index(positional[0])
    return UNKNOWN


def is_bounded(value: object) -> bool:
    """Whether a value is no larger than what constructors need: what is linted may be written by anybody."""
    if isinstance(value, (list, tuple)):
        return len(_nodes(value)) <= _MOST_ITEMS
    if isinstance(value, (str, range)):
        return len(value) <= _MOST_ITEMS
    return not isinstance(value, (int, float)) or abs(value) <= _MOST


def bounded(value: object) -> object:
    return value if is_bounded(value) else UNKNOWN


def flat(values: Sequence[object]) -> list[object]:
    """What is in a list and in the lists in it, as far as a few thousand of them."""
    return [one for one in _nodes(values) if not isinstance(one, (list, tuple))]


def _nodes(values: Sequence[object]) -> list[object]:
    found: list[object] = []
    left = list(reversed(values))
    while left and len(found) <= _MOST_ITEMS:
        one = left.pop()
        found.append(one)
        if isinstance(one, (list, tuple)):
            left.extend(reversed(one[: _MOST_ITEMS + 1]))
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
    if isinstance(base, Built):
        return Built()  # a part of what was counted
    if isinstance(base, range):
        base = list(base[:_MOST_ITEMS])
    if isinstance(base, (list, tuple)) and isinstance(index, slice):
        return base[index] if index.step != 0 else UNKNOWN
    if isinstance(base, (list, tuple)) and isinstance(index, int) and -len(base) <= index < len(base):
        return base[index]
    if isinstance(base, dict) and isinstance(index, (str, int)):
        return base.get(index, UNKNOWN)
    return UNKNOWN


def part_of(parts: Sequence[object]) -> object:
    """The slice that these are the bounds of; `UNKNOWN` where one is not known."""
    if all(part is None or isinstance(part, int) for part in parts):
        return slice(*parts)
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


def compared(links: Sequence[ast.cmpop], values: Sequence[object]) -> object:
    """`0 < width <= 64`, with Python's own links between the values."""
    pairs = zip(links, values[:-1], values[1:], strict=True)
    found = [computed(LINKS.get(type(link), ""), [left, right]) for link, left, right in pairs]
    return computed("and", found)


def _arithmetic(op: str, values: list[object]) -> object:
    left, right = values if len(values) == 2 else (UNKNOWN, UNKNOWN)
    if op in ("==", "!="):
        return (left == right) is (op == "==")
    if op == "+" and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return bounded([*left, *right])
    if op == "+" and isinstance(left, str) and isinstance(right, str):
        return bounded(left + right)
    if op == "*" and isinstance(left, (list, tuple)) and isinstance(right, int) and right <= MOST_ROUNDS:
        return bounded(list(left) * right)
    if op == "%" and isinstance(left, str) and not _WIDE.search(left):
        try:
            return left % (tuple(right) if isinstance(right, list) else right)
        except (TypeError, ValueError):
            return UNKNOWN
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and op in _ARITHMETIC:
        try:
            return bounded(_ARITHMETIC[op](left, right))
        except (ZeroDivisionError, OverflowError):
            return UNKNOWN
    return UNKNOWN
