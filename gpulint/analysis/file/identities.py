"""What stands for one and the same thing while a file is followed, however often it is met: sites of forwards and losses,
holders, parameters, loops."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import assigned, resets
from gpulint.analysis.file.facts import Loop
from gpulint.analysis.values.values import Holder, ParamToken, Site


class Identities:
    """Makes each token and loop once."""

    def __init__(self) -> None:
        self.sites: dict[int, Site] = {}
        self.param_tokens: dict[tuple[ir.Function, str], ParamToken] = {}
        self.holders: dict[tuple[str, str], Holder] = {}
        self.loops: dict[int, Loop] = {}
        self.reset_cache: dict[ir.Function, frozenset[str]] = {}

    def param_token(self, function: ir.Function, name: str) -> ParamToken:
        key = (function, name)
        found = self.param_tokens.get(key)
        if found is None:
            found = self.param_tokens[key] = ParamToken(function, name)
        return found

    def site(self, at: ir.Part, what: str, function: ir.Function, path: str | None) -> Site:
        found = self.sites.get(id(at.origin))
        if found is None:
            found = self.sites[id(at.origin)] = Site(at, what, function, path)
        return found

    def holder(self, scope: str, name: str) -> Holder:
        """The name of a function's, or the attribute of a class's, whose qualified name is `scope`."""
        found = self.holders.get((scope, name))
        if found is None:
            found = self.holders[(scope, name)] = Holder()
        return found

    def loop(self, statement: ir.For | ir.While, function: ir.Function, parent: Loop | None) -> Loop:
        found = self.loops.get(id(statement))
        if found is None:
            found = Loop(statement, function, parent, resets(statement.body), assigned(statement.body))
            self.loops[id(statement)] = found
        return found

    def comprehension_loop(
        self, expr: ir.Comp, target: ir.Expr, iterable: ir.Expr, function: ir.Function, parent: Loop | None
    ) -> Loop:
        found = self.loops.get(id(expr))
        if found is None:
            body: list[ir.Stmt] = [ir.ExprStmt(element) for element in expr.elements]
            statement = ir.For(target, iterable, body, [])
            for part in (statement, *body):
                part.origin = expr.origin
            found = self.loops[id(expr)] = Loop(statement, function, parent)
        return found

    def resets_of(self, function: ir.Function) -> frozenset[str]:
        found = self.reset_cache.get(function)
        if found is None:
            found = self.reset_cache[function] = resets(function.body)
        return found
