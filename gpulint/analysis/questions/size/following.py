"""Statements and expressions followed with the constants that they are given, for what is built on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.size.built import UNKNOWN, Built, Named, Returned, Scope
from gpulint.analysis.questions.size.computing import MOST_ROUNDS, bind, computed, item_of
from gpulint.analysis.questions.size.defaults import argument_defaults
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST_STATEMENTS = 3_000  # followed for one network
DEPTH = 8  # calls in calls


class Following:
    """Follows statements and expressions; what a call makes, who derives from it says."""

    def __init__(self) -> None:
        self._left = _MOST_STATEMENTS
        self._depth = 0
        self._total = Built()

    def call(self, call: ir.Call, scope: Scope) -> object:
        """The value of a call, whose layers are added to the total."""
        raise NotImplementedError

    # --- statements ----------------------------------------------------------------------------------------------

    def run(self, block: Sequence[ir.Stmt], scope: Scope) -> None:
        """Follow statements. Raises `Returned` where they return."""
        for statement in block:
            self._left -= 1
            if self._left < 0:
                self.unseen()
                raise Returned(UNKNOWN)
            self._statement(statement, scope)

    def _statement(self, statement: ir.Stmt, scope: Scope) -> None:
        if isinstance(statement, ir.Assign):
            if statement.value is not None:
                value = self.value(statement.value, scope)
                for target in statement.targets:
                    bind(target, value, scope)
                    if value is UNKNOWN and self._is_part(target, scope):
                        self.unseen()
        elif isinstance(statement, ir.AugAssign):
            bind(
                statement.target,
                computed(
                    statement.op.rstrip("="),
                    [self.value(statement.target, scope), self.value(statement.value, scope)],
                ),
                scope,
            )
        elif isinstance(statement, ir.Return):
            raise Returned(UNKNOWN if statement.value is None else self.value(statement.value, scope))
        elif isinstance(statement, ir.ExprStmt):
            self.value(statement.value, scope)
        elif isinstance(statement, ir.If):
            self._branch(statement, scope)
        elif isinstance(statement, ir.For):
            self._loop(statement, scope)
        elif isinstance(statement, ir.While):
            self.unseen()
        elif isinstance(statement, ir.Jump):
            if statement.kind == "raise":
                raise Returned(UNKNOWN)
        else:
            for block in statement.blocks()[:1]:
                self.run(block, scope)

    def _branch(self, statement: ir.If, scope: Scope) -> None:
        test = self.value(statement.test, scope)
        if isinstance(test, (bool, int, float, str, list, tuple)) or test is None:
            self.run(statement.body if test else statement.orelse, scope)
            return
        # The larger one counts, and what both may have bound is as the second leaves it.
        before, largest = replace(self._total), replace(self._total)
        returned: Returned | None = None
        for block in (statement.body, statement.orelse):
            self._total = replace(before)
            try:
                self.run(block, scope)
            except Returned as ended:
                returned = ended if block is statement.body else returned
            if (self._total.about, self._total.layers) > (largest.about, largest.layers):
                largest = replace(self._total)
            largest.complete &= self._total.complete
            largest.rows &= self._total.rows
            largest.seen &= self._total.seen
        self._total = largest
        self._total.complete = False
        if returned is not None and statement.orelse:
            raise returned

    def _loop(self, statement: ir.For, scope: Scope) -> None:
        through = self.value(statement.iterable, scope)
        if isinstance(through, (list, tuple, range)) and len(through) <= MOST_ROUNDS:
            for item in through:
                bind(statement.target, item, scope)
                self.run(statement.body, scope)
        else:
            bind(statement.target, UNKNOWN, scope)
            before = self._total.layers
            self.run(statement.body, scope)
            if self._total.layers != before:
                self.unseen()

    def _is_part(self, target: ir.Expr, scope: Scope) -> bool:
        """Whether an attribute is called somewhere in its class, as networks are."""
        if scope.info is None or not isinstance(target, ir.Attr) or target.path is None:
            return False
        attr = target.path.partition(".")[2]
        for one in scope.info.ancestors():
            for method in one.cls.methods.values():
                own = method.params[0].name if method.params else ""
                place = f"{own}.{attr}"
                if any(
                    (c.func.path or "").startswith(place) and c.func.path in (place, f"{place}.forward")
                    for _, c in ir.calls(method.body)
                ):
                    return True
        return False

    def unseen(self) -> None:
        """Note that not all that is built is in sight."""
        self._total.complete = self._total.seen = False

    # --- expressions ---------------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr, scope: Scope) -> object:
        """What an expression comes to: a constant, something built or named, or unknown."""
        if isinstance(expr, ir.Const):
            return expr.value
        if isinstance(expr, (ir.Name, ir.Attr)):
            return self._place(expr, scope)
        if isinstance(expr, ir.Op):
            if expr.op == "if":
                test = self.value(expr.operands[0], scope)
                if test is UNKNOWN:
                    return UNKNOWN
                return self.value(expr.operands[1 if test else 2], scope)
            return computed(expr.op, [self.value(operand, scope) for operand in expr.operands])
        if isinstance(expr, ir.Seq):
            return self.display(expr, scope)
        if isinstance(expr, ir.DictDisplay):
            return self._table(expr, scope)
        if isinstance(expr, ir.Sub):
            return item_of(self.value(expr.base, scope), self.value(expr.index, scope))
        if isinstance(expr, ir.Comp):
            return self._comprehension(expr, scope)
        if isinstance(expr, ir.Call):
            return self.call(expr, scope)
        if isinstance(expr, (ir.LambdaExpr, ir.Text)):
            return Named("")
        return UNKNOWN

    def display(self, expr: ir.Seq, scope: Scope) -> object:
        """The items of a list, starred ones among them."""
        items: list[object] = []
        for item in expr.items:
            value = self.value(item.value if isinstance(item, ir.Starred) else item, scope)
            if not isinstance(item, ir.Starred):
                items.append(value)
            elif isinstance(value, (list, tuple)):
                items += value
        return items

    def _table(self, expr: ir.DictDisplay, scope: Scope) -> object:
        found: dict[object, object] = {}
        for key, value in expr.pairs:
            if not isinstance(key, ir.Const) or not isinstance(key.value, (str, int)):
                return UNKNOWN
            # A class or a layer by name is made where the table is read, and not all of them here.
            found[key.value] = UNKNOWN if isinstance(value, ir.Call) else self.value(value, scope)
        return found

    def _comprehension(self, expr: ir.Comp, scope: Scope) -> object:
        target, iterable, _ = expr.clauses[0]
        through = self.value(iterable, scope)
        rounds = through if isinstance(through, (list, tuple, range)) and len(expr.clauses) == 1 else None
        found: list[object] = []
        before = self._total.layers
        for item in list(rounds)[:MOST_ROUNDS] if rounds is not None else [UNKNOWN]:
            bind(target, item, scope)
            found.append(self.value(expr.elements[-1], scope))
        if rounds is None:
            if self._total.layers != before:
                self.unseen()
            return UNKNOWN
        return found

    def _place(self, expr: ir.Name | ir.Attr, scope: Scope) -> object:
        path = expr.path or ""
        head, _, rest = path.partition(".")
        if head in scope.names:
            if not rest:
                return scope.names[head]
        elif not rest:
            return self._bound_outside(scope.function, head)
        params = scope.function.params
        if scope.info is not None and params and params[0].name == head:
            return scope.own.get(rest, UNKNOWN)
        home: FileAnalysis = scope.function.home
        full = home.names.qualify(path) if head not in scope.names else None
        if full is not None and rest:
            return Named(full)
        return argument_defaults(home).get(rest, UNKNOWN) if rest else UNKNOWN

    def _bound_outside(self, function: ir.Function, name: str) -> object:
        """The number or text that a name is bound to, once, in the function or around it."""
        home: FileAnalysis = function.home
        scope: ir.Function | None = function
        while scope is not None:
            if name in home.evidence[scope].assigned or any(param.name == name for param in scope.params):
                values = [
                    s.value
                    for s in ir.statements(scope.body)
                    if isinstance(s, ir.Assign) and any(target.path == name for target in s.targets)
                ]
                (only,) = values if len(values) == 1 else (None,)
                simple = isinstance(only, (ir.Const, ir.Op, ir.Seq, ir.Name, ir.Attr, ir.DictDisplay))
                if simple and self._depth < DEPTH and only is not None:
                    self._depth += 1
                    try:
                        return self.value(only, Scope(scope, {}))
                    finally:
                        self._depth -= 1
                return UNKNOWN
            scope = scope.parent
        if name in home.classes:
            return home.classes[name]
        full = home.names.qualify(name)
        found = home.imported_value(full) if full is not None else None
        if found is not None and found.kind is Kind.CLASS:
            return found.ref
        return Named(full) if full is not None else UNKNOWN
