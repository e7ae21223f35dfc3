"""What stands around an expression in its statement."""

from __future__ import annotations

from gpulint.analysis.code import ir

Chain = tuple[ir.Expr, ...]


def parents_of(statement: ir.Stmt) -> dict[int, ir.Expr]:
    """For each expression of a statement the one around it, by identity."""
    found: dict[int, ir.Expr] = {}
    for expr in ir.own_parts(statement):
        for child in expr.children():
            found[id(child)] = expr
    return found


def chain_of(expr: ir.Expr, parents: dict[int, ir.Expr]) -> Chain:
    """The expressions around an expression, innermost first."""
    found: list[ir.Expr] = []
    current = parents.get(id(expr))
    while current is not None:
        found.append(current)
        current = parents.get(id(current))
    return tuple(found)
