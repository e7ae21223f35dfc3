"""Which statements of a function may still see what one statement has bound to a name: along the ways that control takes, round
a loop as well, up to where the name is bound anew."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets


def seeing(body: list[ir.Stmt], path: str, origin: ir.Stmt | None) -> set[int]:
    """By id, the statements whose own expressions may read what `origin` leaves under a name; without an origin, what was
    there when the function began."""
    walk = _Walk(path, origin)
    walk.block(body, origin is None)
    return walk.seen


class _Walk:
    """One walk through the blocks, with one answer at each point: may the value still be there?"""

    def __init__(self, path: str, origin: ir.Stmt | None) -> None:
        self._path = path
        self._origin = origin
        self.seen: set[int] = set()
        self._left: list[
            dict[str, bool]
        ] = []  # of each loop around: whether it is there at a `break`, a `continue`

    def block(self, block: list[ir.Stmt], there: bool) -> bool:
        for statement in block:
            there = self._statement(statement, there)
        return there

    def _statement(self, statement: ir.Stmt, there: bool) -> bool:
        if there:
            self.seen.add(id(statement))
        if isinstance(statement, (ir.For, ir.While)):
            return self._loop(statement, there)
        if isinstance(statement, ir.Try):
            return self._try(statement, there)
        after = self._bound(statement, there)
        if isinstance(statement, (ir.If, ir.Match)):
            # Each of the blocks is walked, whatever the others say; none of the cases of a `match` need fit.
            ends = [self.block(inner, after) for inner in statement.blocks()]
            return any(ends) or (after and isinstance(statement, ir.Match))
        if isinstance(statement, ir.With):
            return self.block(statement.body, after)
        if isinstance(statement, ir.Jump) and self._left and statement.kind in self._left[-1]:
            self._left[-1][statement.kind] |= after
        return after and not isinstance(statement, (ir.Return, ir.Jump))

    def _bound(self, statement: ir.Stmt, there: bool) -> bool:
        if statement is self._origin:
            return True
        bound = statement.targets if isinstance(statement, ir.Delete) else targets(statement)
        return there and all(target.path != self._path for target in bound)

    def _loop(self, loop: ir.For | ir.While, there: bool) -> bool:
        while True:
            if there and isinstance(loop, ir.While):
                self.seen.add(id(loop))  # its test is asked in each round
            self._left.append({"break": False, "continue": False})
            ends = self.block(loop.body, self._bound(loop, there))
            left = self._left.pop()
            again = there or ends or left["continue"]
            if again == there:
                return self.block(loop.orelse, there) or left["break"]
            there = again

    def _try(self, statement: ir.Try, there: bool) -> bool:
        ends = self.block(statement.body, there)
        # Anywhere in the body it may fail.
        fails = there or ends or any(one is self._origin for one in ir.statements(statement.body))
        after = self.block(statement.orelse, ends)
        for handler in statement.handlers:
            after |= self.block(handler.body, fails)
        if fails:
            self.block(statement.final, True)
        return self.block(statement.final, after)
