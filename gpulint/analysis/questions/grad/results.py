"""What becomes of one forward's result within its function: which names hold it, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.uses import COMPARISONS
from gpulint.analysis.file.facts import Forward
from gpulint.analysis.torch.names import HOST_ATTRS, PAIRS, TO_DEVICE, TO_HOST

_SHAPES = frozenset("size dim numel nelement ndimension".split())
_OF_SHAPES = frozenset("shape ndim size iscomplexobj isscalar".split())
_TO_CPU = frozenset("cpu to tolist item".split())
_SHOWN = frozenset("print pprint info debug warning log".split())


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
        self.names = self._reached(lambda value: True)
        self.left_there = self._reached(self._stays) - self._bound_otherwise(self._stays)
        self.uncut = self._reached(_keeps_graph)

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
    def is_dropped(self) -> bool:
        """Whether nothing is done with the result: `net(x)`, `_ = net(x)`."""
        return not any(True for _ in self._uses()) and not self._used_in_place

    @property
    def is_only_shape(self) -> bool:
        """Whether only the shape of the result is read."""
        return not self._used_in_place and self._shape_is_read and not any(True for _ in self._uses())

    @property
    def is_idle(self) -> bool:
        """Whether the result goes nowhere: it is printed, compared or asserted, or nothing at all is done with it."""
        return all(_shows(statement) for statement in self._uses())

    def _uses(self) -> Iterator[ir.Stmt]:
        """The statements that use the result for something, those left out that only give it another name."""
        for statement in self._statements:
            bound = {id(t) for t in targets(statement) if isinstance(t, ir.Name)}
            if isinstance(statement, ir.Assign) and len(bound) == len(targets(statement)) > 0:
                continue
            if isinstance(statement, ir.ExprStmt) and statement.value is self._forward.call:
                continue
            roots = [root for root in statement.expressions() if id(root) not in bound]
            if any(self._has(root, self.names) for root in roots):
                yield statement

    @property
    def _used_in_place(self) -> bool:
        """Whether the statement of the forward makes something else of it than a name: `net(x).argmax()`."""
        statement = self._forward.stmt
        value = statement.value if isinstance(statement, (ir.Assign, ir.ExprStmt)) else None
        return value is not self._forward.call and (value is None or self._has(value, frozenset()))

    @property
    def _shape_is_read(self) -> bool:
        for statement in self._statements:
            for part in ir.own_parts(statement):
                base = _reads_shape(part)
                if base is not None and self._has(base, self.names):
                    return True
        return False

    @property
    def is_read_on_cpu(self) -> bool:
        """Whether its array is taken without `.cpu()`: on a GPU that fails, so that it never runs there."""
        return any(
            call.method == "numpy" and isinstance(call.func, ir.Attr) and self._comes_here(call.func.base)
            for statement in self._statements
            for call in ir.own_calls(statement)
        )

    @property
    def is_given_to_arrays(self) -> bool:
        """Whether numpy computes with the result, undetached and moved nowhere, which fails for what has a graph."""

        def is_left(value: ir.Expr) -> bool:
            return self._stays(value) and _keeps_graph(value)

        def goes_on(value: ir.Expr) -> bool:
            if self._is_array(value) or self._is_handed_on(value):
                return False
            return is_left(value) and not self._names_any(value, other)

        other = self._bound_otherwise(is_left)  # what is made of these may be anything
        names = self._reached(goes_on) - other
        return any(
            len(call.args) > 0
            and _is_of_arrays(self._forward, call)
            and is_left(call.args[0])
            and self._has(call.args[0], names)
            for statement in self._statements
            for call in ir.own_calls(statement)
        )

    def _names_any(self, expr: ir.Expr, names: frozenset[str]) -> bool:
        """Whether an expression has one of the names elsewhere than in what the network is given."""
        if expr is self._forward.call or self._runs_it_again(expr):
            return False
        if isinstance(expr, ir.Name) and expr.id in names:
            return True
        return any(self._names_any(child, names) for child in expr.children())

    def _is_handed_on(self, value: ir.Expr) -> bool:
        """Whether a function that is none of torch's, or a method of the object itself, makes something of it: who knows what."""
        function = self._forward.function
        own = function.params[0].name if function.cls is not None and function.params else ""
        for part in ir.walk(value):
            if isinstance(part, ir.Call) and part is not self._forward.call and not self._runs_it_again(part):
                path = part.func.path or ""
                full = function.home.names.qualify(path) or ""
                if (own and path.partition(".")[0] == own) or (full and not full.startswith("torch.")):
                    return True
        return False

    def _is_array(self, value: ir.Expr) -> bool:
        return any(
            isinstance(part, ir.Call) and _is_of_arrays(self._forward, part) for part in ir.walk(value)
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


def _is_of_arrays(forward: Forward, call: ir.Call) -> bool:
    """`np.clip(boxes, 0, 1)`, which takes no tensor of a GPU; what only asks for the shape takes any."""
    full = forward.function.home.names.qualify(call.func.path or "") or ""
    return full.startswith("numpy.") and call.method not in _OF_SHAPES


def _keeps_graph(value: ir.Expr) -> bool:
    """Whether nothing in a value is known to leave the graph behind, `x.detach()`, `x.argmax(1)`."""
    return not any(
        (isinstance(part, ir.Call) and part.method in TO_DEVICE | TO_HOST | PAIRS)
        or (isinstance(part, ir.Attr) and part.attr == "data")
        or (isinstance(part, ir.Op) and part.op in COMPARISONS)
        for part in ir.walk(value)
    )


def _shows(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.Check):
        return True
    value = statement.value if isinstance(statement, ir.ExprStmt) else None
    return isinstance(value, ir.Call) and (value.method in _SHOWN or value.method.startswith("assert"))
