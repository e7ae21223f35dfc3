"""One of several values that a function gives back together: what it is, is read where they are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpulint.rules.detect.kept.definitions import Definition, Definitions
from gpulint.rules.detect.kept.traced import PROVEN, Traced, joined

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import additive_terms, unscaled
from gpulint.analysis.file.lookup import called_in_project, parts_given


def entry(
    function: ir.Function,
    definitions: Definitions,
    backwarded: frozenset[str],
    expr: ir.Sub,
    stmt: ir.Stmt,
    of: Callable[[ir.Function, ir.Expr, ir.Stmt], Traced],
) -> Traced | None:
    """What `losses[1]` carries in a function after `losses, rewards = self.balance(batch)`; None where one of the functions
    that may have made it is not seen, or does not give so many values side by side. `backwarded` is what a backward goes
    through, `of` says of an expression of another function what it carries."""
    index, base = expr.index, expr.base.path
    if not isinstance(index, ir.Const) or not isinstance(index.value, int) or base is None:
        return None
    made, _ = definitions.reaching(base, stmt)
    if not made or any(param.name == base for param in function.params):
        return None
    found: list[Traced] = []
    for definition in made:
        given = list(_given(function, definition, base))
        if not given:
            return None
        for callee, statement, value in given:
            items = value.items if isinstance(value, ir.Seq) else ()
            if not -len(items) <= index.value < len(items):
                return None
            one = items[index.value]
            backwards = {items[k].path for k in range(len(items)) if f"{base}[{k}]" in backwarded}
            if one.path is not None and one.path in _terms(callee, statement, backwards):
                why = f"`{callee.name}` gives what goes backward in this place too, or a term of it"
                found.append(Traced(PROVEN, PROVEN, why, freed=True))
            else:
                found.append(of(callee, one, statement))
    return joined(found)


def _given(
    function: ir.Function, definition: Definition, name: str
) -> Iterator[tuple[ir.Function, ir.Return, ir.Expr]]:
    """What a name is given, as the function that gives it says at each of its returns."""
    call, statement = definition.value, definition.stmt
    if not isinstance(call, ir.Call) or not isinstance(statement, ir.Assign) or len(statement.targets) != 1:
        return
    if definition.part:
        yield from parts_given(function, call, statement.targets[0], name)
        return
    callee = called_in_project(function, call)
    if callee is None or callee.is_generator:
        return
    for inner in ir.statements(callee.body):
        if isinstance(inner, ir.Return) and inner.value is not None:
            yield callee, inner, inner.value


def _terms(function: ir.Function, stmt: ir.Stmt, sums: set[str | None]) -> frozenset[str]:
    """The names that sums are made of, and the sums themselves."""
    definitions = Definitions(function)
    found: set[str] = set()
    wanted = [path for path in sums if path is not None]
    while wanted:
        path = wanted.pop()
        if path not in found:
            found.add(path)
            for definition in definitions.reaching(path, stmt)[0]:
                if definition.value is not None and not definition.part and not definition.element:
                    terms = (unscaled(term).path for term in additive_terms(definition.value))
                    wanted += [term for term in terms if term is not None]
    return frozenset(found)
