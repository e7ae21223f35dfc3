"""Whether the code that fills a container also holds it to a size: reads the source for what compares its length before it grows or
after, for what cuts it, and for keys that come round."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpulint.runtime.holding.naming import function_at, is_variable, name_of, targets_of, tree_of

_REMOVING = set("pop popitem popleft clear remove discard".split())
_SIZES = ("size", "numel", "qsize")
_JOINING = ("cat", "concat", "concatenate", "stack", "vstack", "hstack", "append")
_LEAVING = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Limit(NamedTuple):
    """`line` is where the container is held to a size, `most` the expression of that size, or the comparison that says when it is made smaller."""

    line: int
    most: ast.expr

    def value(self, value_of: Callable[[str], Any]) -> int | None:
        """The size, by what names have (`self.room` and `room` are both asked for as `room`); None where that does not tell it."""
        found = self.most.value if isinstance(self.most, ast.Constant) else value_of(name_of(self.most))
        return found if type(found) is int and found >= 0 else None


@dataclass(frozen=True, slots=True)
class Container:
    """What is looked for: a variable, or with `attribute` an attribute of whatever object; with `nested` what is in it, and not
    itself. `mapping`: it grows by assignment to keys. `owner` is the class that has it."""

    name: str
    attribute: bool
    nested: bool
    mapping: bool
    owner: str = ""


def limit_of(file: str, container: Container, first_line: int = 0) -> Limit | None:
    """What holds the container to a size; None where nothing is seen to."""
    tree = tree_of(file)
    if tree is None:
        return None
    kinds = (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef))
    own = next((one for one in kinds if one.name == container.owner.rpartition(".")[2]), None)
    for scope in (own, *((function_at(tree, first_line), tree) if container.name != "self" else ())):
        if scope is not None:
            reader = _Reader(scope, container)
            if reader.growths:
                return reader.limit()
    return None


class _Reader:
    """The statements of one scope that grow the container, remove from it, and ask for its length."""

    def __init__(self, scope: ast.AST, container: Container) -> None:
        self._sought = container
        self._aliases: set[str] = set()
        self._functions = [one for one in ast.walk(scope) if isinstance(one, (*_FUNCTIONS, ast.Module))]
        assigned = [one for one in ast.walk(scope) if isinstance(one, ast.Assign) and self._is_it(one.value)]
        self._aliases = {to.id for one in assigned for to in one.targets if isinstance(to, ast.Name)}
        named = [one for one in self._functions if isinstance(one, _FUNCTIONS)]
        self._measured = any(one.name == "__len__" and self._mentions(one) for one in named)
        self.growths = {id(function): list(self._grown(function)) for function in self._functions}
        self.growths = {key: nodes for key, nodes in self.growths.items() if nodes}
        self._removers = {one.name for one in named if self._removes(one.body)}

    def limit(self) -> Limit | None:
        """What holds it to a size wherever it grows."""
        nodes = {id(node): node for nodes in self.growths.values() for node in nodes}
        rings = [self._ring(node) for node in nodes.values()]
        if all(rings):
            return rings[0]
        growing = [one for one in self._functions if id(one) in self.growths]
        growers = {getattr(one, "name", "") for one in growing}
        for function in self._functions:
            near = function in growing or growers & _called(function.body)
            if near or getattr(function, "name", "?") in _called(growing):
                for node in _own(function):
                    found = self._cut(node) or self._guard(node, function, nodes)
                    if found is not None:
                        return found
        return None

    # -- what a statement does

    def _is_it(self, node: Any) -> bool:
        sought, through = self._sought, False
        if isinstance(node, ast.Name) and node.id in self._aliases:
            return True
        if sought.name == "self" and isinstance(node, ast.Call) and name_of(node.func) == "super":
            return True
        while sought.nested and isinstance(node, (ast.Subscript, ast.Call)):
            through = True
            # `pools.setdefault(k, [])`
            node = getattr(node.func, "value", None) if isinstance(node, ast.Call) else node.value
        return is_variable(node, sought.name, sought.attribute) and through == sought.nested

    def _mentions(self, node: ast.AST) -> bool:
        return any(map(self._is_it, ast.walk(node)))

    def _is_length(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):  # with what is about to come
            return self._is_length(node.left) or self._is_length(node.right)
        if isinstance(node, ast.Subscript):  # `kept.shape[0]`
            return name_of(node.value) == "shape" and self._is_it(getattr(node.value, "value", None))
        if not isinstance(node, ast.Call):
            return False
        if name_of(node.func) in _SIZES:
            return self._is_it(getattr(node.func, "value", None))
        of = node.args[0] if node.args and name_of(node.func) == "len" else None
        return self._is_it(of) or (isinstance(of, ast.Name) and of.id == "self" and self._measured)

    def _grown(self, function: ast.AST) -> Iterator[ast.AST]:
        for node in _own(function):
            found = any(grows and self._is_it(target) for target, grows in targets_of(node))
            if isinstance(node, ast.Assign):
                keyed = any(isinstance(to, ast.Subscript) and self._is_it(to.value) for to in node.targets)
                joins = any(_joins(one) and self._mentions(one) for one in ast.walk(node.value))
                found = (keyed and self._sought.mapping) or (joins and any(map(self._is_it, node.targets)))
            if found:
                yield node

    def _removes(self, body: list[Any], surely: bool = False) -> bool:
        """With `surely` nothing counts that may remove nothing, or puts something else in its place."""
        for node in (inner for one in body for inner in ast.walk(one)):
            if isinstance(node, ast.Call):
                popped = name_of(node.func) in _REMOVING and self._is_it(getattr(node.func, "value", None))
                popped = popped and not (surely and len(node.args) > 1)
                if popped or (name_of(node.func) == "heappop" and node.args and self._is_it(node.args[0])):
                    return True
            elif isinstance(node, ast.Delete):
                if any(self._is_it(to.value) for to in node.targets if isinstance(to, ast.Subscript)):
                    return True
            elif isinstance(node, ast.Assign) and any(map(self._is_it, map(_whole, node.targets))):
                return not surely or not any(ast.iter_child_nodes(node.value))
        return False

    # -- what holds it to a size

    def _ring(self, node: ast.AST) -> Limit | None:
        """`kept[step % 64] = x`"""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                key = target.slice if isinstance(target, ast.Subscript) else None
                if isinstance(key, ast.BinOp) and isinstance(key.op, ast.Mod):
                    return Limit(node.lineno, key.right)
        return None

    def _cut(self, node: ast.AST) -> Limit | None:
        """`kept = kept[-64:]`, `del kept[64:]`, `kept = heapq.nlargest(64, kept)`"""
        most: ast.expr | None = None
        if isinstance(node, ast.Delete):
            for target in (to for to in node.targets if _whole(to) is not to and self._is_it(_whole(to))):
                most = target.slice.lower or _negated(target.slice.upper)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Assign) and any(map(self._is_it, map(_whole, node.targets))):
            for value in filter(self._mentions, ast.walk(node.value)):
                if isinstance(value, ast.Call) and name_of(value.func) in ("nlargest", "nsmallest"):
                    most = value.args[0]
                elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
                    most = value.slice.upper if value.slice.lower is None else _negated(value.slice.lower)
        return Limit(node.lineno, most) if most is not None and _negated(most) is None else None  # type: ignore[attr-defined]

    def _guard(self, node: ast.AST, function: ast.AST, growths: dict[int, ast.AST]) -> Limit | None:
        """`if len(kept) > 64: kept.pop(0)`, `if len(kept) < 64: kept.append(x)`, and not by its length `while size > most: kept.popitem()`,
        `if step % 64 == 0: kept.clear()`"""
        if not isinstance(node, (ast.If, ast.While)):
            return None
        for compared in ast.walk(node.test):
            if not isinstance(compared, ast.Compare):
                continue
            comes_round = isinstance(compared.left, ast.BinOp) and isinstance(compared.left.op, ast.Mod)
            until = isinstance(node, ast.While) and isinstance(compared.ops[0], (ast.Gt, ast.GtE))
            if not self._is_length(compared.left):
                if (comes_round or until) and self._removes(node.body, surely=True):
                    return Limit(node.lineno, compared)
                continue
            operator, limit = type(compared.ops[0]), Limit(node.lineno, compared.comparators[0])
            within = {id(inner) for one in node.body for inner in ast.walk(one)}
            otherwise = {id(inner) for one in node.orelse for inner in ast.walk(one)}
            if operator in (ast.Gt, ast.GtE, ast.Eq):
                leaves = isinstance(node.body[-1], _LEAVING) and isinstance(node, ast.If)
                after = all(getattr(one, "lineno", 0) > node.lineno for one in growths.values())
                if self._removes(node.body) or _called(node.body) & self._removers:
                    return limit
                if growths.keys() <= otherwise or (leaves and after and id(function) in self.growths):
                    return limit
            elif operator in (ast.Lt, ast.LtE, ast.NotEq) and growths.keys() <= within:
                return limit
        return None


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop(0)
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node
            pending += ast.iter_child_nodes(node)


def _whole(target: ast.expr) -> ast.expr:
    """`kept` of `kept[:]`"""
    cut = isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)
    return target.value if cut else target  # type: ignore[attr-defined]


def _joins(node: ast.AST) -> bool:
    added = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    return added or (isinstance(node, ast.Call) and name_of(node.func) in _JOINING)


def _negated(node: ast.expr | None) -> ast.expr | None:
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None


def _called(body: list[Any]) -> set[str]:
    """The names of what statements call."""
    return {name_of(node.func) for one in body for node in ast.walk(one) if isinstance(node, ast.Call)}
