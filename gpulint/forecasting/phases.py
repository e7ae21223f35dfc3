"""The phases that a program's text shows, and the lines from which they are reached: what is done without gradients, evaluations,
backwards, generation. A forecast knows of a program what was run of it, so it has to know what was not."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpulint.runtime.parent.source import (
    EVALUATION_METHODS,
    ends_training,
    find_target,
    first_party,
    is_gradless,
    tree_of,
)

WITHOUT: Final = "part without gradients"
_EVALUATION: Final = "evaluation"
_CALLED: Final = {
    **dict.fromkeys(("evaluate", "validate", "predict", "test"), _EVALUATION),
    "generate": "generation",
    "backward": "backward",
}
_PLAIN: Final = (
    ast.Name, ast.Attribute, ast.Constant, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.boolop, ast.Not, ast.cmpop, ast.Load,
)  # fmt: skip
# A framework calls these beside the training; others only where the script asks for a test.
_HOSTED: Final = EVALUATION_METHODS - {"test_step", "predict_step", "compute_metrics"}
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class PhaseStart:
    """A line that begins something which may take other memory than what was seen. `hosted` says that a framework calls it."""

    file: str
    line: int
    what: str
    hosted: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """A statement that leads to phases (numbers), and the conditions that hold where it runs, as text, as far as they are the same
    each time."""

    line: int
    phases: tuple[int, ...]
    guards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """A module or a function: its lines, its loops (first and last line) and the ways in it."""

    file: str
    first: int
    last: int
    loops: tuple[tuple[int, int], ...]
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """All of a program's own files."""

    phases: tuple[PhaseStart, ...] = ()
    scopes: tuple[Scope, ...] = ()


@dataclass(slots=True)
class _Body:
    """A scope as it is read: its statements, not those of functions within, each with the conditions under which it runs."""

    file: str
    node: Any
    is_method: bool = False
    loops: list[tuple[int, int]] = field(default_factory=list)
    statements: list[tuple[ast.stmt, tuple[str, ...]]] = field(default_factory=list)
    own: dict[int, int] = field(default_factory=dict)  # line -> phase


def shown(target: str, module: bool, folder: str) -> Outline:
    """The phases of what `python TARGET` or, with `module`, `python -m TARGET` in `folder` runs."""
    script = find_target(target, module, folder)
    return Outline() if script is None else outline(first_party(script, module, folder))


def outline(files: Iterable[str]) -> Outline:
    """The phases of some files and the ways to them. Files that cannot be read or parsed have none."""
    phases: list[PhaseStart] = []
    bodies: list[_Body] = []
    modules: dict[str, set[str]] = {}
    for file in files:
        tree = tree_of(file)
        if tree is None:
            continue
        modules[file] = _imported(tree)
        stored = _stored(tree)
        for node, is_method in _scopes(tree):
            body = _Body(file, node, is_method)
            _read(body, node.body, (), stored | _changing(node))
            _find(body, phases)
            bodies.append(body)
    reach = _Reach(bodies, modules)
    scopes = []
    for body in bodies:
        ways = []
        for node, guards in body.statements:
            led = set(reach.of_statement(body, node))
            if node.lineno in body.own:
                led.add(body.own[node.lineno])
            if led:
                ways.append(Way(node.lineno, tuple(sorted(led)), guards))
        if ways:
            is_module = isinstance(body.node, ast.Module)
            first, last = (0, 1 << 30) if is_module else (body.node.lineno, body.node.end_lineno)
            scopes.append(Scope(body.file, first, last, tuple(body.loops), tuple(ways)))
    return Outline(tuple(phases), tuple(scopes))


def _scopes(tree: ast.Module) -> Iterator[tuple[Any, bool]]:
    yield tree, False
    for parent in ast.walk(tree):
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, _FUNCTIONS):
                yield child, isinstance(parent, ast.ClassDef)


# -- one scope ---------------------------------------------------------------------------------------------------------


def _read(body: _Body, block: list[ast.stmt], guards: tuple[str, ...], changing: set[str]) -> None:
    """Note the statements of a block, with the conditions under which they run. What handles errors is no phase."""
    for node in block:
        body.statements.append((node, guards))
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, _LOOPS):
            body.loops.append((node.lineno, node.end_lineno or node.lineno))
        if isinstance(node, ast.If):
            text = _steady(node.test, changing)
            both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
            needed = node.test.values if both else [node.test]  # type: ignore[attr-defined]
            known = filter(None, (_steady(one, changing) for one in needed))
            _read(body, node.body, (*guards, *known), changing)
            _read(body, node.orelse, (*guards, f"not ({text})") if text else guards, changing)
            continue
        for name in ("body", "orelse", "finalbody"):
            _read(body, getattr(node, name, []), guards, changing)


def _steady(test: ast.expr, changing: set[str]) -> str:
    """A condition that is the same each time its line is reached, as text; "" for others."""
    for node in ast.walk(test):
        if not isinstance(node, _PLAIN):
            return ""
        if isinstance(node, ast.Name) and node.id in changing:
            return ""
        if isinstance(node, ast.Attribute) and f".{node.attr}" in changing:
            return ""
    return ast.unparse(test)


def _stored(tree: ast.AST) -> set[str]:
    """The attributes that a file sets anywhere, each with its dot, and what it declares global."""
    found = {f".{n.attr}" for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= set(node.names)
    return found


def _changing(scope: ast.AST) -> set[str]:
    """The names that a scope's loops set."""
    loops = (node for node in ast.walk(scope) if isinstance(node, _LOOPS))
    return {
        node.id for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip


def _find(body: _Body, phases: list[PhaseStart]) -> None:
    def add(node: ast.stmt, what: str, hosted: bool = False) -> None:
        known = body.own.get(node.lineno)
        if known is None:
            body.own[node.lineno] = len(phases)
            phases.append(PhaseStart(body.file, node.lineno, what, hosted))
        elif phases[known].what == WITHOUT:
            phases[known] = replace(phases[known], what=what)

    if isinstance(body.node, _FUNCTIONS):
        first = _first(body.node.body)
        if body.is_method and body.node.name in _HOSTED and first is not None:
            add(first, _EVALUATION, hosted=True)
        elif any(map(is_gradless, body.node.decorator_list)) and first is not None:
            add(first, WITHOUT)
    for node, _ in body.statements:
        if isinstance(node, (ast.With, ast.AsyncWith)):
            first = _first(node.body)
            if first is not None and any(is_gradless(item.context_expr) for item in node.items):
                add(first, WITHOUT)
        for part in (inner for head in _heads(node) for inner in ast.walk(head)):
            if isinstance(part, ast.Call) and (what := _phase_of(part)):
                add(node, what)


def _first(block: list[ast.stmt]) -> ast.stmt | None:
    """The first statement that does something: a docstring and `pass` do not."""
    for one in block:
        documents = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        if not (documents or isinstance(one, ast.Pass)):
            return one
    return None


def _phase_of(call: ast.Call) -> str:
    if not isinstance(call.func, ast.Attribute):
        return ""
    return _EVALUATION if ends_training(call) else _CALLED.get(call.func.attr, "")


def _heads(node: ast.stmt) -> Iterator[ast.AST]:
    """What of a statement runs with its own line: of a compound one its head."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return
    for name, value in ast.iter_fields(node):
        if name not in ("body", "orelse", "finalbody", "handlers", "cases"):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    yield one


# -- from one scope to another ------------------------------------------------------------------------------------------


def _imported(tree: ast.Module) -> set[str]:
    """The names that imports bind in a file."""
    aliases = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {(one.asname or one.name).partition(".")[0] for node in aliases for one in node.names}


class _Reach:
    """The phases that are reached from a function, by the names in it: a function's is its own, a method's any object's."""

    def __init__(self, bodies: list[_Body], modules: dict[str, set[str]]) -> None:
        self._modules = modules
        self._functions: dict[str, list[_Body]] = {}
        self._methods: dict[str, list[_Body]] = {}
        self._known: dict[int, frozenset[int]] = {}
        for body in bodies:
            if isinstance(body.node, _FUNCTIONS):
                table = self._methods if body.is_method else self._functions
                table.setdefault(body.node.name, []).append(body)

    def of_statement(self, body: _Body, node: ast.stmt) -> Iterator[int]:
        for called in self._called(body, node):
            yield from self._of(called)

    def _of(self, start: _Body) -> frozenset[int]:
        if id(start) not in self._known:
            seen: dict[int, _Body] = {}
            pending = [start]
            while pending:
                body = pending.pop()
                if id(body) not in seen:
                    seen[id(body)] = body
                    for node, _ in body.statements:
                        pending += self._called(body, node)
            own = (number for body in seen.values() for number in body.own.values())
            self._known[id(start)] = frozenset(own)
        return self._known[id(start)]

    def _called(self, body: _Body, node: ast.stmt) -> Iterator[_Body]:
        for part in _heads(node):
            for one in ast.walk(part):
                if isinstance(one, ast.Name):
                    yield from self._functions.get(one.id, ())
                elif isinstance(one, ast.Attribute):
                    base = getattr(one.value, "id", "")
                    table = self._functions if base in self._modules[body.file] else self._methods
                    yield from table.get(one.attr, ())
