"""The numbers and words that a command line has by default: `parser.add_argument("--width", default=64)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

_Constant = int | float | str


def read_defaults(tree: ast.AST) -> dict[str, set[_Constant]]:
    """The defaults that a file gives the attributes of the parsed arguments."""
    found: dict[str, set[_Constant]] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
        ):
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            name = _text(given.get("dest")) or _attribute([flag for arg in node.args if (flag := _text(arg))])
            default = _constant(given.get("default"))
            default = _of_flag(_text(given.get("action"))) if "default" not in given else default
            if name and default is not None:
                found.setdefault(name, set()).add(default)
    return found


def agreeing(files: Iterable[Mapping[str, set[_Constant]]]) -> dict[str, _Constant]:
    """Those that are the same wherever they are given."""
    together: dict[str, set[_Constant]] = {}
    for defaults in files:
        for name, values in defaults.items():
            together.setdefault(name, set()).update(values)
    return {name: next(iter(values)) for name, values in together.items() if len(values) == 1}


def _constant(node: ast.expr | None) -> _Constant | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand)
        return -inner if isinstance(inner, (int, float)) else None
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (int, float, str)) else None


def _of_flag(action: str | None) -> bool | None:
    """`action="store_true"`: False unless it is given."""
    return action == "store_false" if action in ("store_true", "store_false") else None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _attribute(flags: list[str]) -> str | None:
    """`hidden_size` of `-H`, `--hidden-size`."""
    long = [flag for flag in flags if flag.startswith("--")] or flags
    return long[0].lstrip("-").replace("-", "_") if long else None
