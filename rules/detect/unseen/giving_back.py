"""Whether a function gives back what some of its calls have made, statement by statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.questions.backward.cutting import cuts_graph
from gpulint.analysis.torch.keeping import PUTTING


def gives_back(function: ir.Function, calls: Sequence[ir.Call]) -> bool:
    """Whether a function returns what is made of the results of some of its calls with their graph, by way of names and
    containers."""
    return _Tracing(frozenset(map(id, calls))).returns(function.body, set())


class _Tracing:
    """Follows what is made of some calls through a function, statement by statement: `y = y.cpu().numpy()` leaves an array."""

    def __init__(self, wanted: Set[int]) -> None:
        self._wanted = wanted
        self._returned = False

    def returns(self, body: list[ir.Stmt], made: set[str]) -> bool:
        self._block(body, made)
        return self._returned

    def _block(self, body: list[ir.Stmt], made: set[str]) -> set[str]:
        for statement in body:
            made = self._statement(statement, made)
        return made

    def _statement(self, statement: ir.Stmt, made: set[str]) -> set[str]:
        taken = _uses(_read_by(statement), self._wanted, made)
        if isinstance(statement, ir.Return):
            self._returned |= taken
        bound = {_root(target) for target in _bound(statement)}
        if taken:
            made = made | bound
        elif isinstance(statement, ir.Assign):
            made = made - {target.path for target in statement.targets if isinstance(target, ir.Name)}
        for call in ir.own_calls(statement):
            if call.method in PUTTING and isinstance(call.func, ir.Attr):
                if _uses(call.args, self._wanted, made):
                    made = made | {_root(call.func.base)}
        return self._blocks(statement, made)

    def _blocks(self, statement: ir.Stmt, made: set[str]) -> set[str]:
        blocks = statement.blocks()
        if isinstance(statement, ir.With):
            return self._block(statement.body, made)
        if isinstance(statement, ir.If):
            return set().union(*(self._block(block, made) for block in blocks))
        for _ in range(2 if blocks else 0):  # what a loop's second round finds
            made = made.union(*(self._block(block, made) for block in blocks))
        return made


def _uses(roots: Iterable[ir.Expr], wanted: Set[int], made: Set[str]) -> bool:
    """Whether an expression has one of the calls or names, and leaves it its graph."""
    stack = list(roots)
    while stack:
        part = stack.pop()
        if id(part) in wanted or (isinstance(part, ir.Name) and part.id in made):
            return True
        if not cuts_graph(part):
            stack += part.children()
    return False


def _read_by(statement: ir.Stmt) -> Sequence[ir.Expr]:
    """What a statement reads, left out what it only binds."""
    if isinstance(statement, ir.Assign):
        return () if statement.value is None else (statement.value,)
    return (statement.iterable,) if isinstance(statement, ir.For) else statement.expressions()


def _bound(statement: ir.Stmt) -> Sequence[ir.Expr]:
    """The places that a statement binds, slots of containers among them."""
    if isinstance(statement, ir.AugAssign):
        return (statement.target,)
    return targets(statement)


def _root(expr: ir.Expr) -> str:
    while isinstance(expr, ir.Sub):
        expr = expr.base
    return expr.path or ""
