"""What a file puts on Python's search path: `sys.path.append(os.path.join(ROOT, "models"))`."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

_SAME = frozenset("abspath realpath normpath expanduser str Path fspath resolve absolute as_posix".split())


def added_folders(tree: ast.Module, filename: str) -> tuple[str, ...]:
    """The folders that a file, of this absolute path, adds by constants and by its own place; relative ones as they are
    written."""
    names: dict[str, str | None] = {"__file__": filename}
    found: list[str] = []
    for statement in _at_import(tree.body):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                names[target.id] = _path(statement.value, names)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            added = _added(statement.value)
            path = _path(added, names) if added is not None else None
            if path is not None:
                found.append(path)
    return tuple(found)


def _at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported or started, whatever they stand under."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from _at_import(statement.body)
            yield from _at_import(getattr(statement, "orelse", []))


def _added(call: ast.Call) -> ast.expr | None:
    written = ast.unparse(call.func)
    if written == "sys.path.append" and len(call.args) == 1:
        return call.args[0]
    return call.args[1] if written == "sys.path.insert" and len(call.args) == 2 else None


def _path(expr: ast.expr, names: dict[str, str | None]) -> str | None:
    """The path that an expression comes to; None where that is not known."""
    if isinstance(expr, ast.Constant):
        return expr.value if isinstance(expr.value, str) else None
    if isinstance(expr, ast.Name):
        return names.get(expr.id)
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, (ast.Add, ast.Div)):
        left, right = _path(expr.left, names), _path(expr.right, names)
        if left is None or right is None:
            return None
        return left + right if isinstance(expr.op, ast.Add) else os.path.join(left, right)
    if isinstance(expr, ast.Attribute) and expr.attr == "parent":
        path = _path(expr.value, names)
        return os.path.dirname(path) if path is not None else None
    if isinstance(expr, ast.Subscript):
        return _above(expr, names)
    return _called(expr, names) if isinstance(expr, ast.Call) else None


def _above(expr: ast.Subscript, names: dict[str, str | None]) -> str | None:
    """`Path(__file__).parents[1]`, `os.path.split(here)[0]`."""
    index = expr.slice.value if isinstance(expr.slice, ast.Constant) else None
    if isinstance(expr.value, ast.Attribute) and expr.value.attr == "parents" and isinstance(index, int):
        path = _path(expr.value.value, names)
        for _ in range(index + 1 if path is not None else 0):
            path = os.path.dirname(path or "")
        return path
    if (
        isinstance(expr.value, ast.Call)
        and ast.unparse(expr.value.func).endswith("path.split")
        and index == 0
    ):
        path = _path(expr.value.args[0], names) if expr.value.args else None
        return os.path.dirname(path) if path is not None else None
    return None


def _called(call: ast.Call, names: dict[str, str | None]) -> str | None:
    """`os.path.join(…)`, `os.path.dirname(…)`, `Path(…).resolve()`; the working directory is `.`."""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [_path(arg, names) for arg in call.args]
    if last in ("getcwd", "cwd") and not given:
        return "."
    if last in ("resolve", "absolute", "as_posix", "joinpath") and isinstance(call.func, ast.Attribute):
        given = [_path(call.func.value, names), *given]
    known = [path for path in given if path is not None]
    if not known or len(known) < len(given):
        return None
    if last in ("join", "joinpath"):
        return os.path.join(*known)
    if last == "dirname":
        return os.path.dirname(known[0])
    return known[0] if last in _SAME else None
