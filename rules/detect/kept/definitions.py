"""What a name stands for at a statement: the assignments that reach it, read off the blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs, targets
from gpulint.analysis.torch.keeping import PUTTING


@dataclass(frozen=True, slots=True)
class Definition:
    """One way in which a name got what it has. `value` is None where nothing can be said of it; `whole`: the name is bound
    afresh, and nothing from before is left; `part`: the name is one of several that `value` is taken apart into; `element`:
    it is what a loop takes out of `value`, one after the other."""

    stmt: ir.Stmt
    value: ir.Expr | None
    whole: bool = True
    part: bool = False
    element: bool = False
    cut: bool = False  # `x.detach_()`


class Definitions:
    """The definitions in one function."""

    def __init__(self, function: ir.Function) -> None:
        self._places: dict[int, tuple[tuple[list[ir.Stmt], int, ir.Stmt | None], ...]] = {}
        self._note(function.body, (), None)

    def _note(
        self,
        block: list[ir.Stmt],
        above: tuple[tuple[list[ir.Stmt], int, ir.Stmt | None], ...],
        owner: ir.Stmt | None,
    ) -> None:
        for number, statement in enumerate(block):
            place = (*above, (block, number, owner))
            self._places[id(statement)] = place
            for inner in statement.blocks():
                self._note(inner, place, statement)

    def owners(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        """The statements around one, innermost first."""
        return [owner for _, _, owner in reversed(self._places.get(id(stmt), ())) if owner is not None]

    def reaching(self, path: str, stmt: ir.Stmt) -> tuple[list[Definition], bool]:
        """The definitions that reach a statement, the nearest first, and whether the way in may bring another: the name is
        a parameter, or bound outside."""
        found: list[Definition] = []
        for block, number, owner in reversed(self._places.get(id(stmt), ())):
            for earlier in reversed(block[:number]):
                if self._take(path, earlier, found):
                    return found, False
            if owner is not None and _own_binding(path, owner, found):
                return found, False
        return found, True

    def _take(self, path: str, statement: ir.Stmt, found: list[Definition]) -> bool:
        """Note what a statement and those in it define; whether nothing from before is left."""
        whole = False
        for definition in defines(path, statement):
            found.append(definition)
            whole = whole or definition.whole
        if whole and not isinstance(statement, (ir.For, ir.While)):
            return True
        sure = [self._take_all(path, inner, found) for inner in statement.blocks() if inner]
        if isinstance(statement, ir.If):
            return bool(statement.orelse) and all(sure)
        return isinstance(statement, ir.With) and bool(sure) and all(sure)

    def _take_all(self, path: str, block: list[ir.Stmt], found: list[Definition]) -> bool:
        return any(self._take(path, statement, found) for statement in reversed(block))

    def after(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """The statements that may run after one, up to the end of the function."""
        for block, number, _ in reversed(self._places.get(id(stmt), ())):
            yield from ir.statements(block[number + 1 :])

    def while_bound(self, path: str, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """The statements after one that still see what it has bound to a name: up to `loss = loss.item()`, that included."""
        for later in self.after(stmt):
            if any(definition.stmt is stmt for definition in self.reaching(path, later)[0]):
                yield later


def _own_binding(path: str, owner: ir.Stmt, found: list[Definition]) -> bool:
    """What a loop or a `with` binds for its body."""
    if isinstance(owner, (ir.For, ir.With)):
        bound = [definition for definition in defines(path, owner) if definition.whole]
        found += bound
        return bool(bound)
    return False


def defines(path: str, statement: ir.Stmt) -> Iterator[Definition]:
    """What one statement does to a name."""
    if isinstance(statement, ir.Assign):
        yield from _assigned(path, statement)
    elif isinstance(statement, ir.AugAssign):
        if statement.target.path == path or _is_item_of(statement.target, path):
            yield Definition(statement, statement.value, whole=False)
    elif isinstance(statement, ir.For):
        if any(target.path == path for target in targets(statement)):
            yield Definition(statement, statement.iterable, element=True)
    elif isinstance(statement, ir.With):
        if any(target.path == path for target in targets(statement)):
            yield Definition(statement, None)
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        yield from _called(path, statement, statement.value)


def _assigned(path: str, statement: ir.Assign) -> Iterator[Definition]:
    if statement.value is None:
        return
    for target, value in pairs(statement):
        inner = target.value if isinstance(target, ir.Wrapper) else target
        if inner.path == path:
            several = value is statement.value and not any(target is one for one in statement.targets)
            yield Definition(statement, value, part=several)
        elif isinstance(target, ir.Seq):
            if any(one.path == path for one in ir.walk(target)):
                yield Definition(statement, value, part=True)
        elif _is_item_of(target, path):
            yield Definition(statement, value, whole=False)


def _called(path: str, statement: ir.Stmt, call: ir.Call) -> Iterator[Definition]:
    if not isinstance(call.func, ir.Attr) or call.func.base.path != path:
        return
    if call.method == "detach_":
        yield Definition(statement, None, cut=True)
    elif call.method in PUTTING:
        for value in (*call.args, *(value for _, value in call.keywords)):
            yield Definition(statement, value, whole=False)


def _is_item_of(target: ir.Expr, path: str) -> bool:
    """`losses["a"]`, `sums[key]`, of `losses` and `sums`."""
    while isinstance(target, ir.Sub):
        target = target.base
        if target.path == path:
            return True
    return False


def binds(statement: ir.Stmt, path: str) -> bool:
    """Whether a statement binds a path, also as a part of a tuple."""
    if isinstance(statement, ir.Assign):
        return any(part.path == path for target in statement.targets for part in ir.walk(target))
    if isinstance(statement, ir.AugAssign):
        return statement.target.path == path
    return isinstance(statement, ir.For) and within(statement.target, path)


def within(target: ir.Expr, name: str) -> bool:
    """Whether a target is a name, or has it among its parts."""
    return any(part.path == name for part in ir.walk(target))
