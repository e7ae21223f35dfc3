"""Small questions to nodes of Python's own tree."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_PLAIN = frozenset(
    "ctx op ops id attr arg kind n s type_comment is_async conversion level names simple name".split()
)


@cache
def fields_of(kind: Hashable) -> tuple[str, ...]:
    """The fields of a kind of node that hold nodes."""
    return tuple(name for name in getattr(kind, "_fields", ()) if name not in _PLAIN)


def children(node: ast.AST) -> Iterator[Any]:
    """The nodes directly in a node, in the order of the text as far as its fields have it."""
    for name in fields_of(type(node)):  # type: ignore[arg-type]
        value: Any = getattr(node, name, None)
        if value.__class__ is list:
            for one in value:
                if isinstance(one, ast.AST):
                    yield one
        elif isinstance(value, ast.AST):
            yield value


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of names and attributes; None for anything else."""
    parts: list[str] = []
    while node.__class__ is ast.Attribute:
        parts.append(node.attr)  # type: ignore[attr-defined]
        node = node.value  # type: ignore[attr-defined]
    if node.__class__ is not ast.Name:
        return None
    parts.append(node.id)  # type: ignore[attr-defined]
    return ".".join(reversed(parts))


def key_of(node: ast.AST) -> str | None:
    """The reference key of an expression that denotes a place: `x`, `self.x`, `hidden[0]`, `out['loss'].x`; else None."""
    kind = node.__class__
    if kind is ast.Name:
        return node.id  # type: ignore[attr-defined, no-any-return]
    if kind is ast.Attribute:
        base = key_of(node.value)  # type: ignore[attr-defined]
        return f"{base}.{node.attr}" if base is not None else None  # type: ignore[attr-defined]
    if kind is ast.Subscript:
        index = constant_index(node.slice)  # type: ignore[attr-defined]
        base = key_of(node.value) if index is not None else None  # type: ignore[attr-defined]
        return f"{base}[{index!r}]" if base is not None else None
    return None


def constant_index(node: ast.AST) -> int | str | None:
    """The number or text that a subscript spells."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_index(node.operand)
        return -inner if isinstance(inner, int) else None
    return None


def last_name(node: ast.AST) -> str:
    """The last name of what is called: `b` of `x.a().b`; empty where there is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def called_on(node: Any, *names: str) -> Any:
    """What a method is called on, by one of these names where some are given; None where a node is no such call."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) and (not names or func.attr in names) else None


def iterated(loop: Any) -> Any:
    """What a loop or a comprehension runs through; None of a `while`."""
    generators = getattr(loop, "generators", ())
    return generators[0].iter if generators else getattr(loop, "iter", None)


def names_in(node: ast.AST) -> set[str]:
    """The names that an expression reads."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def root_of(node: Any) -> Any:
    """What an attribute or an item is of in the end: `a` of `a.b[0]`; the node where it is neither."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def arguments(call: ast.Call) -> list[Any]:
    """What a call is given."""
    return [*call.args, *(one.value for one in call.keywords)]


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value that a call gives by this name."""
    return next((one.value for one in call.keywords if one.arg == name), None)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The value that a call gives by position or by name; None where stars may give it."""
    starred = any(isinstance(one, ast.Starred) for one in call.args[: position + 1])
    return call.args[position] if position < len(call.args) and not starred else keyword(call, name)


def parameters(node: ast.AST) -> tuple[ast.arg, ...]:
    """The parameters of a function or lambda in order, those with stars last."""
    given: ast.arguments | None = getattr(node, "args", None)
    if given is None:
        return ()
    stars = tuple(one for one in (given.vararg, given.kwarg) if one is not None)
    return (*given.posonlyargs, *given.args, *given.kwonlyargs, *stars)


def default_of(node: ast.AST, name: str) -> ast.expr | None:
    """The default of a function's parameter."""
    given: ast.arguments = node.args  # type: ignore[attr-defined]
    positional = [*given.posonlyargs, *given.args]
    from_last = zip(reversed(positional), reversed(given.defaults), strict=False)
    by_name = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return next((default for one, default in (*from_last, *by_name) if one.arg == name), None)


def at_once(statement: ast.AST) -> Iterator[Any]:
    """The expressions that a statement works out for certain before anything in its blocks runs."""
    stack: list[Any] = [
        one
        for one in ast.iter_child_nodes(statement)
        if isinstance(one, (ast.expr, ast.withitem)) and not isinstance(getattr(one, "ctx", None), ast.Store)
    ]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.expr):
            yield part
        if isinstance(part, ast.BoolOp):
            stack.append(part.values[0])
        elif isinstance(part, ast.IfExp):
            stack.append(part.test)
        elif not isinstance(part, (ast.Lambda, *COMPREHENSIONS)):
            stack += ast.iter_child_nodes(part)
