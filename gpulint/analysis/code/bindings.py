"""The names that a file binds, read off Python's own tree of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# What binds names that no text shows.
_UNSEEN = frozenset({"exec", "globals", "execfile", "vars", "locals"})


def bound_names(tree: ast.Module) -> frozenset[str] | None:
    """All names that a file binds in any scope; None where it may bind more than its text shows."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return None
        if isinstance(node, ast.Call) and _last(node.func) in _UNSEEN:
            return None
        found.update(_binds(node))
    return frozenset(found)


def exported_names(tree: ast.Module) -> frozenset[str] | None:
    """The names that others may import of a module, and more; None where it may give any."""
    found = bound_names(tree)
    if found is None or "__getattr__" in found:
        return None
    replaced = any(
        (isinstance(node, ast.Attribute) and node.attr in ("modules", "__dict__", "__path__"))
        or (isinstance(node, ast.Name) and node.id in ("setattr", "__path__"))
        for node in ast.walk(tree)
    )
    return None if replaced else found


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _binds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        yield node.name or ""
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""
