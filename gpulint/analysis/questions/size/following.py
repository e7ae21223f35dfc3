"""Statements and expressions followed with the constants that they are given, for what is built on the way."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial as with_arguments

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.size.built import (
    UNKNOWN,
    Built,
    Closure,
    Named,
    Partial,
    Returned,
    Scope,
    Thing,
)
from gpulint.analysis.questions.size.computing import (
    MOST_ROUNDS,
    bind,
    bounded,
    compared,
    computed,
    item_of,
    part_of,
)
from gpulint.analysis.questions.size.naming import Naming

_MOST_STATEMENTS = 20_000  # followed for one network


class Following(Naming):
    """Follows statements and expressions; what a call makes, who derives from it says."""

    def __init__(self) -> None:
        super().__init__()
        self._left = _MOST_STATEMENTS
        self._total = Built()

    @abstractmethod
    def call(self, call: ir.Call, scope: Scope) -> object:
        """The value of a call, whose layers are added to the total."""

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
                    self._bind(target, value, scope)
                    self._note_unseen(target, value, scope)
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
            self._while(statement, scope)
        elif isinstance(statement, ir.FunctionDef):
            scope.names[statement.function.name] = Closure(statement.function, scope)
        elif isinstance(statement, ir.Jump):
            if statement.kind == "raise":
                raise Returned(UNKNOWN)
        else:
            for block in statement.blocks()[:1]:
                self.run(block, scope)

    def _bind(self, target: ir.Expr, value: object, scope: Scope) -> None:
        """Bind what a statement assigns to: of settings, `args.width = 64`, the item of that name."""
        params = scope.function.params
        of_object = scope.info is not None and params and (target.path or "").startswith(f"{params[0].name}.")
        if isinstance(target, ir.Attr) and not of_object:
            before = replace(self._total)
            holder = self.value(target.base, scope)
            self._total = before
            if isinstance(holder, (dict, Thing)):
                (holder if isinstance(holder, dict) else holder.own)[target.attr] = value
                return
        bind(target, value, scope)

    def _branch(self, statement: ir.If, scope: Scope) -> None:
        test = self.value(statement.test, scope)
        if isinstance(test, (bool, int, float, str, list, tuple, dict)) or test is None:
            self.run(statement.body if test else statement.orelse, scope)
            return
        # What both may have bound is as the second leaves it.
        returned: Returned | None = None

        def follow(block: Sequence[ir.Stmt]) -> None:
            nonlocal returned
            try:
                self.run(block, scope)
            except Returned as ended:
                returned = ended if block is statement.body else returned

        self._larger(with_arguments(follow, statement.body), with_arguments(follow, statement.orelse))
        if returned is not None and statement.orelse:
            raise returned

    def _either(self, expr: ir.Op, scope: Scope) -> object:
        """`DropPath(rate) if rate else nn.Identity()`."""
        test = self.value(expr.operands[0], scope)
        if test is not UNKNOWN:
            return self.value(expr.operands[1 if test else 2], scope)
        found: list[object] = []
        ways = [lambda one=one: found.append(self.value(one, scope)) for one in expr.operands[1:]]
        self._larger(*ways)
        built = [one for one in found if isinstance(one, Built)]
        if built:
            return max(built, key=lambda one: one.about)
        makers = [one for one in found if isinstance(one, (ClassInfo, Named, Closure, Partial))]
        return makers[-1] if len(makers) == len(found) else UNKNOWN  # one or the other layer: much the same

    def _larger(self, *ways: Callable[[], None]) -> None:
        """Of what is made one way or the other, the larger counts."""
        before, largest = replace(self._total), replace(self._total)
        for follow in ways:
            self._total = replace(before)
            follow()
            if (self._total.about, self._total.layers) > (largest.about, largest.layers):
                largest, self._total = self._total, largest
            largest.complete &= self._total.complete
            largest.rows &= self._total.rows
            largest.seen &= self._total.seen
            largest.known &= self._total.known
            largest.looks_up &= self._total.looks_up
            largest.mixes |= self._total.mixes
        different = (largest.weights, largest.about) != (before.weights, before.about)
        self._total = largest
        self._total.complete &= not different

    def _while(self, statement: ir.While, scope: Scope) -> None:
        for _ in range(MOST_ROUNDS):
            test = self.value(statement.test, scope)
            if test is UNKNOWN:
                break
            if not test:
                return
            self.run(statement.body, scope)
        self.unseen()

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
                self.unseen(repeated=True)

    def _note_unseen(self, target: ir.Expr, value: object, scope: Scope) -> None:
        """Note that a part is not seen that a statement stores; of a pair, `self.a, self.b = a, b`, either."""
        if isinstance(target, ir.Seq):
            values = (
                value
                if isinstance(value, list) and len(value) == len(target.items)
                else [UNKNOWN] * len(target.items)
            )
            for one, part in zip(target.items, values, strict=True):
                self._note_unseen(one, part, scope)
        elif value is UNKNOWN and self._is_part(target, scope):
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

    def unseen(self, repeated: bool = False) -> None:
        """Note that not all that is built is in sight; `repeated`: but for how often it is."""
        self._total.complete = self._total.seen = False
        self._total.known &= repeated

    # --- expressions ---------------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr, scope: Scope) -> object:
        """What an expression comes to: a constant, something built or named, or unknown."""
        if isinstance(expr, ir.Const):
            return expr.value
        if isinstance(expr, (ir.Name, ir.Attr)):
            return self._place(expr, scope)
        if isinstance(expr, ir.Op):
            if expr.op == "if":
                return self._either(expr, scope)
            values = [self.value(operand, scope) for operand in expr.operands]
            return compared(expr.origin.ops, values) if expr.op == "cmp" else computed(expr.op, values)
        if isinstance(expr, ir.Seq):
            return self.display(expr, scope)
        if isinstance(expr, ir.DictDisplay):
            return self._table(expr, scope)
        if isinstance(expr, ir.Sub):
            return item_of(self.value(expr.base, scope), self._index(expr.index, scope))
        if isinstance(expr, ir.Comp):
            return self._comprehension(expr, scope)
        if isinstance(expr, ir.Call):
            return self.call(expr, scope)
        if isinstance(expr, ir.LambdaExpr):
            return Closure(expr.function, scope)
        if isinstance(expr, ir.Text):
            return self._text(expr, scope)
        return UNKNOWN

    def _index(self, index: ir.Expr, scope: Scope) -> object:
        if not isinstance(index, ir.Slice):
            return self.value(index, scope)
        first, second = (
            None if part is None else self.value(part, scope) for part in (index.lower, index.upper)
        )
        has_step = len(index.parts) > (index.lower is not None) + (index.upper is not None)
        return part_of((first, second, self.value(index.parts[-1], scope) if has_step else None))

    def _text(self, expr: ir.Text, scope: Scope) -> object:
        """An f-string of constants; Python's own tree has what stands between them."""
        parts = iter(expr.parts)
        found: list[str] = []
        for piece in expr.origin.values:
            value = piece.value if isinstance(piece, ast.Constant) else self.value(next(parts), scope)
            if not isinstance(value, (str, int)):
                return Named("")
            found.append(str(value))
        return "".join(found)

    def display(self, expr: ir.Seq, scope: Scope) -> object:
        """The items of a list, starred ones among them."""
        items: list[object] = []
        for item in expr.items:
            value = self.value(item.value if isinstance(item, ir.Starred) else item, scope)
            if not isinstance(item, ir.Starred):
                items.append(value)
            elif isinstance(value, (list, tuple)):
                items += value
        return bounded(items)

    def _table(self, expr: ir.DictDisplay, scope: Scope) -> object:
        found: dict[object, object] = {}
        for key, value in expr.pairs:
            if not isinstance(key, ir.Const) or not isinstance(key.value, (str, int)):
                return UNKNOWN
            # A class or a layer by name is made where the table is read, and not all of them here.
            found[key.value] = UNKNOWN if isinstance(value, ir.Call) else self.value(value, scope)
        return found

    def _comprehension(self, expr: ir.Comp, scope: Scope) -> object:
        before = self._total.layers
        within = Scope(scope.function, dict(scope.names), scope.own, scope.info, scope.outer)
        found: list[object] = []
        known = self._rounds(expr, 0, within, found)
        if not known and self._total.layers != before:
            self.unseen(repeated=True)
        return found if known and expr.kind != "dict" else UNKNOWN

    def _rounds(self, expr: ir.Comp, clause: int, scope: Scope, found: list[object]) -> bool:
        """Follow a comprehension's clauses from one on; whether it is known what they go through."""
        if clause == len(expr.clauses):
            if len(found) < MOST_ROUNDS:
                found.append(self.value(expr.elements[-1], scope))
            return True
        target, iterable, tests = expr.clauses[clause]
        through = self.value(iterable, scope)
        known = isinstance(through, (list, tuple, range))
        for item in list(through)[:MOST_ROUNDS] if isinstance(through, (list, tuple, range)) else [UNKNOWN]:
            bind(target, item, scope)
            kept = [self.value(test, scope) for test in tests]
            known &= UNKNOWN not in kept
            if all(one is UNKNOWN or one for one in kept):
                known &= self._rounds(expr, clause + 1, scope, found)
        return known
