"""What the verifier reads in the program's own source, by Python's syntax tree: the loop around a line, the function that
holds it, and what lines call."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Loop:
    """The first lines of the simple statements in a loop's body, in order, and which names each one binds."""

    lines: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    binds: tuple[frozenset[str], ...]


def tree_of(file: str) -> ast.Module | None:
    """The tree of a file as it is now; None where it has none."""
    try:
        with open(file, "rb") as source:
            return _parsed(source.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=64)
def _parsed(text: bytes) -> ast.Module:
    try:
        return ast.parse(text)
    except SystemError:  # Python 3.11 miscounts its depth where two threads parse at once (gh-106905)
        return ast.parse(text)


@functools.lru_cache(maxsize=1024)
def around(file: str, line: int) -> Loop | None:
    """The innermost loop whose body holds the line; None where there is none or the file cannot be read."""
    tree = tree_of(file)
    if tree is None:
        return None
    holding = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _LOOPS)
        and node.body
        and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    ]
    if not holding:
        return None
    innermost = max(holding, key=lambda node: node.lineno)
    statements = [s for part in innermost.body for s in _simple(part)]
    return Loop(
        tuple(s.lineno for s in statements),
        tuple((s.lineno, s.end_lineno or s.lineno) for s in statements),
        tuple(frozenset(_bound(s)) for s in statements),
    )


def _simple(node: ast.stmt) -> list[ast.stmt]:
    """The statements without a body, of a statement and everything in it, in source order."""
    if isinstance(node, _SCOPES):
        return []
    inner = [child for name in ("body", "orelse", "finalbody") for child in getattr(node, name, [])]
    for handler in getattr(node, "handlers", []):
        inner += handler.body
    if not inner:
        return [node]
    return [simple for child in inner for simple in _simple(child)]


def _bound(node: ast.stmt) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def idle_lines(loop: Loop, name: str, last_use: int) -> tuple[int, ...]:
    """The lines at which `name` is alive and no longer used: after its last use, round to where it is bound
    anew."""
    later = [line for line, span in zip(loop.lines, loop.spans, strict=True) if span[0] > last_use]
    wrapped: list[int] = []
    for line, binds in zip(loop.lines, loop.binds, strict=True):
        if line >= last_use:
            break
        wrapped.append(line)
        if name in binds:
            break
    return (*later, *wrapped)


def lines_to_watch(file: str, line: int) -> tuple[int, ...]:
    """The lines whose figures a claim about the loop's peak needs."""
    loop = around(file, line)
    return () if loop is None else loop.lines


@functools.lru_cache(maxsize=1024)
def function_at(file: str, line: int) -> str:
    """The name of the innermost function that holds the line; empty at the top of a module."""
    tree = tree_of(file)
    functions = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(functions, key=lambda node: node.lineno).name if functions else ""


def called_on(file: str, line: int) -> frozenset[str]:
    """The last names of what a line calls, hands over to be called (`register_forward_hook(self.save)`) or defines."""
    return _called(file).get(line, frozenset())


@functools.lru_cache(maxsize=64)
def _called(file: str) -> dict[int, frozenset[str]]:
    found: dict[int, set[str]] = {}
    for node in ast.walk(tree) if (tree := tree_of(file)) is not None else ():
        for line, name in _names(node):
            found.setdefault(line, set()).add(name)
    return {line: frozenset(names) for line, names in found.items()}


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.lineno, node.name
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            yield node.func.lineno, node.func.id
        for part in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(part, ast.Attribute):
                yield part.end_lineno or part.lineno, part.attr


def reached_from(files: Iterable[str], names: Iterable[str], depth: int) -> frozenset[str]:
    """The last names of what functions with these `names` call, and what those call, so many calls `depth`."""
    known = set(names)
    bodies = [_bodies(file) for file in files]
    fresh = set(known)
    for _ in range(depth):
        fresh = {called for body in bodies for name in fresh for called in body.get(name, ())} - known
        known |= fresh
    return frozenset(known)


@functools.lru_cache(maxsize=64)
def _bodies(file: str) -> dict[str, frozenset[str]]:
    """What each function of a file calls, by its name."""
    found: dict[str, frozenset[str]] = {}
    for node in ast.walk(tree) if (tree := tree_of(file)) is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            called = {name for part in node.body for inner in ast.walk(part) for _, name in _names(inner)}
            found[node.name] = found.get(node.name, frozenset()) | called
    return found
