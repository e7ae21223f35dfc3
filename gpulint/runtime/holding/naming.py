"""Finds the statements that put something into a variable, an attribute or a container, and the loops around a line, by
reading the source."""

from __future__ import annotations

import ast
import functools
from collections.abc import Container, Iterator
from typing import Any

MOST_HEAD = 48  # characters of a loop's head that are said
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PUSHING = ("heappush", "insort", "insort_left", "insort_right")
_GROWING = set(
    "append appendleft extend extendleft insert add update setdefault put put_nowait push __setitem__".split()
)


@functools.lru_cache(maxsize=256)
def tree_of(file: str) -> ast.Module | None:
    try:
        with open(file, "rb") as source:
            return ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return None


def storing_lines(file: str, name: str, attribute: bool, first_line: int = 0) -> tuple[int, ...]:
    """The lines of `file` that store into `name`, the likeliest cause of growth first: what lets a container
    grow, what makes a new value of the old one, then other assignments in loops and outside.

    `attribute` looks for `anything.name` instead of the bare name. `first_line` restricts the search to the
    function that starts there (its decorators included), where one does.
    """
    stored = _stored(file, name, attribute, first_line)
    return tuple(dict.fromkeys(line for _, line, _ in sorted(stored)))


def renews(file: str, name: str, attribute: bool, lines: Container[int]) -> bool:
    """Whether a statement at one of these lines makes a new value of `name` from the old one: `kept = torch.cat([kept, out])`."""
    return any(renewed and line in lines for _, line, renewed in _stored(file, name, attribute))


@functools.lru_cache(maxsize=256)
def _stored(file: str, name: str, attribute: bool, first_line: int = 0) -> list[tuple[int, int, bool]]:
    """The statements that store into it: rank as a cause of growth, line, and whether the new value is made of the old one."""
    tree = tree_of(file) or ast.Module([], [])
    found = []
    for node, looped in _walk(function_at(tree, first_line) or tree, False):
        for target, grows in targets_of(node):
            named, through_item = _is_named(target, name, attribute)
            if named:
                from_itself = _mentions(getattr(node, "value", None), name, attribute)
                rank = 0 if grows or through_item else 1 if from_itself else 2 if looped else 3
                found.append((rank, getattr(node, "lineno", 0), from_itself))
    return found


def loops_around(file: str, first_line: int, line: int) -> tuple[tuple[int, str], ...]:
    """The loops around a line of the function that starts at `first_line`, outermost first: where each begins, and its head."""
    around = [one for one in _loops(file) if first_line <= one[0] <= line <= one[1]]
    return tuple((first, head) for first, last, head in sorted(around, key=lambda one: (one[0], -one[1])))


@functools.lru_cache(maxsize=256)
def heads(file: str) -> frozenset[int]:
    """Where those loops of a file begin that have others within."""
    loops = _loops(file)
    return frozenset(first for first, last, _ in loops if any(first < other[0] <= last for other in loops))


@functools.lru_cache(maxsize=256)
def _loops(file: str) -> tuple[tuple[int, int, str], ...]:
    """First and last line of every loop of a file, and its head."""
    found = []
    for node in ast.walk(tree_of(file) or ast.Module([], [])):
        if isinstance(node, ast.While):
            head = f"while {ast.unparse(node.test)}"
        elif isinstance(node, (ast.For, ast.AsyncFor, *_COMPREHENSIONS)):
            of = node.generators[0] if isinstance(node, _COMPREHENSIONS) else node
            head = f"for {ast.unparse(of.target)} in {ast.unparse(of.iter)}"
        else:
            continue
        shown = head if len(head) <= MOST_HEAD else f"{head[: MOST_HEAD - 1]}…"
        found.append((node.lineno, node.end_lineno or 0, shown))
    return tuple(found)


def _walk(node: ast.AST, looped: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below, each with whether it is in a loop of this scope."""
    yield node, looped
    inside = looped or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, inside)


def is_variable(node: Any, name: str, attribute: bool) -> bool:
    """Whether it is the variable of that name, or with `attribute` an attribute of whatever object."""
    return isinstance(node, ast.Attribute if attribute else ast.Name) and name_of(node) == name


def _mentions(value: ast.AST | None, name: str, attribute: bool) -> bool:
    """Whether a new value is made of the old one: `state = cell(x, state)`."""
    return value is not None and any(is_variable(node, name, attribute) for node in ast.walk(value))


def function_at(tree: ast.Module, line: int) -> ast.AST | None:
    if line <= 0:
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            if line in {node.lineno, *(d.lineno for d in decorators)}:
                return node
    return None


def targets_of(node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The expressions a node stores into, each with whether that lets it grow."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING:
        yield node.func.value, True
    elif isinstance(node, ast.Call) and node.args and name_of(node.func) in _PUSHING:
        yield node.args[0], True
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from ((part, False) for part in _parts(target))
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, False
    elif isinstance(node, ast.AugAssign):
        yield node.target, True
    elif isinstance(node, (ast.NamedExpr, ast.For, ast.AsyncFor)):
        yield from ((part, False) for part in _parts(node.target))
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            yield from ((part, False) for part in _parts(item.optional_vars)) if item.optional_vars else ()


def name_of(node: ast.AST) -> str:
    """The last name of `a.b.name`; empty where an expression is something else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


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
    while not is_variable(target, name, attribute):
        if not isinstance(target, (ast.Subscript, ast.Call, ast.Attribute)):
            return False, False
        through_item = through_item or isinstance(target, ast.Subscript)
        target = target.func if isinstance(target, ast.Call) else target.value
    return True, through_item
