"""Finds the statements that put something into a variable, an attribute or a container, by reading the
source."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

_GROWING = {
    "append",
    "appendleft",
    "extend",
    "extendleft",
    "insert",
    "add",
    "update",
    "setdefault",
    "put",
    "put_nowait",
    "push",
    "__setitem__",
}


@functools.lru_cache(maxsize=256)
def _tree(file: str) -> ast.Module | None:
    try:
        with open(file, "rb") as source:
            return ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return None


def storing_lines(file: str, name: str, attribute: bool, first_line: int = 0) -> tuple[int, ...]:
    """The lines of `file` that store into `name`, those that let it grow first.

    `attribute` looks for `anything.name` instead of the bare name. `first_line` restricts the search to the
    function that starts there (its decorators included), where one does.
    """
    tree = _tree(file)
    if tree is None:
        return ()
    scope = _function_at(tree, first_line) or tree
    growing: list[int] = []
    binding: list[int] = []
    for node in ast.walk(scope):
        for target, grows in _targets(node):
            found, through_item = _is_named(target, name, attribute)
            if found:
                (growing if grows or through_item else binding).append(getattr(node, "lineno", 0))
    return tuple(dict.fromkeys([*sorted(growing), *sorted(binding)]))


def _function_at(tree: ast.Module, line: int) -> ast.AST | None:
    if line <= 0:
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            if line in {node.lineno, *(d.lineno for d in decorators)}:
                return node
    return None


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The expressions a node stores into, each with whether that lets it grow."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING:
        yield node.func.value, True
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from ((part, False) for part in _parts(target))
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, False
    elif isinstance(node, ast.AugAssign):
        yield node.target, True
    elif isinstance(node, ast.NamedExpr):
        yield node.target, False


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _parts(item)
    elif isinstance(target, ast.Starred):
        yield from _parts(target.value)
    else:
        yield target


def _is_named(target: ast.expr, name: str, attribute: bool) -> tuple[bool, bool]:
    """Whether `target` is the name, or an item of it (`name[k]`, `name[k].x`); and whether it is an item."""
    through_item = False
    while True:
        if attribute and isinstance(target, ast.Attribute) and target.attr == name:
            return True, through_item
        if not attribute and isinstance(target, ast.Name) and target.id == name:
            return True, through_item
        if isinstance(target, ast.Subscript):
            through_item, target = True, target.value
        elif isinstance(target, ast.Call):
            target = target.func
        elif isinstance(target, ast.Attribute):
            target = target.value
        else:
            return False, False
