"""Whether one forward's result is read on the CPU within its function, by the names that hold it."""

from __future__ import annotations

from collections.abc import Callable

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.facts import Forward
from gpulint.analysis.torch.names import HOST_ATTRS

_SHAPES = frozenset("size dim numel nelement ndimension".split())
_TO_CPU = frozenset("cpu to tolist item".split())


def _reads_shape(expr: ir.Expr) -> ir.Expr | None:
    """`x` of `x.shape`, `x.size(0)`, `len(x)`; None for anything else."""
    if isinstance(expr, ir.Attr) and expr.attr in HOST_ATTRS | {"ndim"}:
        return expr.base
    if isinstance(expr, ir.Call):
        if isinstance(expr.func, ir.Attr) and expr.method in _SHAPES:
            return expr.func.base
        if expr.method == "len" and len(expr.args) == 1:
            return expr.args[0]
    return None


class Result:
    """The uses of a forward's result, followed through the plain names of its function whatever the order."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._statements = list(ir.statements(forward.function.body))
        self.left_there = self._reached(self._stays) - self._bound_otherwise(self._stays)

    def _reached(self, keeps: Callable[[ir.Expr], bool]) -> frozenset[str]:
        """The names bound to the result or to what is made of it, as long as `keeps` says so of each value."""
        names: set[str] = set()
        for _ in range(3):
            before = len(names)
            for statement in self._statements:
                value = statement.value if isinstance(statement, (ir.Assign, ir.AugAssign)) else None
                if value is None or not self._has(value, names) or not keeps(value):
                    continue
                bound = [statement.target] if isinstance(statement, ir.AugAssign) else targets(statement)
                names |= {target.id for target in bound if isinstance(target, ir.Name)}
            if len(names) == before:
                break
        return frozenset(names)

    def _bound_otherwise(self, keeps: Callable[[ir.Expr], bool]) -> frozenset[str]:
        """Names that are somewhere bound to a value of which `keeps` does not say so, to something moved: `y = y.cpu()`."""
        return frozenset(
            target.id
            for statement in self._statements
            if isinstance(statement, ir.Assign) and statement.value is not None and not keeps(statement.value)
            for target in targets(statement)
            if isinstance(target, ir.Name)
        )

    def _stays(self, expr: ir.Expr) -> bool:
        """Whether nothing in an expression moves a tensor, nor a helper that could: `to_host(y)`."""
        stack = [expr]
        while stack:
            part = stack.pop()
            if part is self._forward.call or self._runs_it_again(part):
                continue
            if isinstance(part, ir.Call) and (part.method in _TO_CPU or isinstance(part.func, ir.Name)):
                return False
            stack += part.children()
        return True

    def _runs_it_again(self, part: ir.Expr) -> bool:
        """Whether it calls the same network elsewhere in the function: what that gives is where this result is."""
        same = self._forward.call.func.path
        return isinstance(part, ir.Call) and same is not None and part.func.path == same

    def _has(self, expr: ir.Expr, names: set[str] | frozenset[str]) -> bool:
        """Whether the result itself goes into an expression, and not only its shape."""
        stack = [expr]
        while stack:
            part = stack.pop()
            if _reads_shape(part) is not None:
                continue
            if part is self._forward.call or (isinstance(part, ir.Name) and part.id in names):
                return True
            stack += part.children()
        return False

    @property
    def is_read_on_cpu(self) -> bool:
        """Whether its array is taken without `.cpu()`: on a GPU that fails, so that it never runs there."""
        return any(
            call.method == "numpy" and isinstance(call.func, ir.Attr) and self._comes_here(call.func.base)
            for statement in self._statements
            for call in ir.own_calls(statement)
        )

    def _comes_here(self, expr: ir.Expr) -> bool:
        while True:
            if expr is self._forward.call:
                return True
            if isinstance(expr, ir.Call):
                if expr.method in _TO_CPU:
                    return False
                if not isinstance(expr.func, ir.Attr) or any(
                    self._has(arg, self.left_there) for arg in expr.args
                ):
                    return self._stays(expr) and self._has(expr, self.left_there)
                expr = expr.func.base
            elif isinstance(expr, (ir.Attr, ir.Sub)):
                expr = expr.base
            else:
                return self._stays(expr) and self._has(expr, self.left_there)
