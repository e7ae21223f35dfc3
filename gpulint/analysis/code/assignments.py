"""What statements bind, add to, start afresh and cut from the graph: patterns of text, without values."""

from __future__ import annotations

from collections.abc import Iterator

from gpulint.analysis.code import ir

_EMPTYING = frozenset("clear pop popleft popitem reset detach_ zero_ get_nowait".split())


def unscaled(expr: ir.Expr) -> ir.Expr:
    """`loss` in `scaler.scale(loss)`, `loss / n`, `(loss * k).mean()`: the value that backward goes through."""
    while True:
        if isinstance(expr, ir.Call):
            if expr.method == "scale" and expr.args:
                expr = expr.args[0]
            elif isinstance(expr.func, ir.Attr) and expr.method in ("mean", "sum") and not expr.args:
                expr = expr.func.base
            else:
                return expr
        elif isinstance(expr, ir.Op) and expr.op in ("/", "*") and len(expr.operands) == 2:
            left, right = expr.operands
            if left.path is not None:
                expr = left
            elif right.path is not None and isinstance(left, ir.Const):
                expr = right
            else:
                return expr
        else:
            return expr


def targets(statement: ir.Stmt) -> list[ir.Expr]:
    """The places a statement binds by plain assignment, tuples taken apart."""
    roots: list[ir.Expr] = []
    if isinstance(statement, ir.Assign):
        roots = list(statement.targets) if statement.value is not None else []
    elif isinstance(statement, ir.For):
        roots = [statement.target]
    elif isinstance(statement, ir.With):
        roots = [target for _, target in statement.items if target is not None]
    result: list[ir.Expr] = []
    while roots:
        target = roots.pop()
        if isinstance(target, ir.Seq):
            roots.extend(target.items)
        elif isinstance(target, ir.Wrapper):
            roots.append(target.value)
        else:
            result.append(target)
    return result


def pairs(statement: ir.Assign) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """Targets with what they are bound to; the parts of a tuple that a call gives, with the call."""
    value = statement.value
    if value is None:
        return
    for target in statement.targets:
        if not isinstance(target, ir.Seq):
            yield target, value
        elif isinstance(value, ir.Seq) and len(value.items) == len(target.items):
            yield from zip(target.items, value.items, strict=True)
        else:
            yield from ((item, value) for item in target.items)


def arithmetic_leaves(expr: ir.Expr) -> list[ir.Expr]:
    """The operands of a sum: `total`, `loss` and `n` in `total + loss * n`."""
    leaves: list[ir.Expr] = []
    stack = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, ir.Op) and current.op in ("+", "-", "*", "/", "neg"):
            stack.extend(reversed(current.operands))
        elif isinstance(current, ir.Op) and current.op == "if":
            stack.extend(reversed(current.operands[1:]))
        else:
            leaves.append(current)
    return leaves


def additive_terms(expr: ir.Expr) -> list[ir.Expr]:
    """The summands of an expression, a constant or configured factor taken off: `a`, `b` in `a + 0.5 * b`."""
    terms: list[ir.Expr] = []
    stack = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, ir.Op) and current.op in ("+", "-", "neg"):
            stack.extend(current.operands)
        elif isinstance(current, ir.Op) and current.op in ("*", "/"):
            left, right = current.operands
            if isinstance(left, (ir.Const, ir.Attr)) and current.op == "*":
                stack.append(right)
            elif isinstance(right, (ir.Const, ir.Attr)) or current.op == "/":
                stack.append(left)
        else:
            terms.append(current)
    return terms


def grown(target: ir.Expr, value: ir.Expr) -> ir.Expr:
    """The branch that lets the target grow: `t + x` of `t = x if t is None else t + x`; else the value itself."""
    if isinstance(value, ir.Op) and value.op == "if" and not is_periodic(value.operands[0]):
        for branch in value.operands[1:]:
            if is_accumulation(target, branch) or is_cat(target, branch):
                return branch
    return value


def is_accumulation(target: ir.Expr, value: ir.Expr) -> bool:
    """Whether `target = value` adds to the target: `t = t + x`, `t = (t * n + x) / (n + 1)`, `t = t + [x]`."""
    if target.path is None or not isinstance(value, ir.Op):
        return False
    return any(leaf.path == target.path for leaf in arithmetic_leaves(value))


def _emptied(loop: ir.For) -> str | None:
    """`kept` of `for values in kept.values(): values.clear()`."""
    over = loop.iterable
    if isinstance(over, ir.Call) and over.method in ("values", "items") and isinstance(over.func, ir.Attr):
        over = over.func.base
    names = {part.path for part in ir.walk(loop.target) if isinstance(part, ir.Name)}
    for statement in loop.body:
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if isinstance(call, ir.Call) and call.method == "clear" and isinstance(call.func, ir.Attr):
            if call.func.base.path in names:
                return over.path
    return None


def resets(block: list[ir.Stmt]) -> frozenset[str]:
    """The paths that a loop's body starts afresh: `x = 0`, `x.clear()`, `del x[:]`, `x.pop(0)`, `x = x.detach()`."""
    found: set[str] = set()
    first = _first_values(block)
    for statement in ir.statements(block):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in targets(statement):
                if (
                    target.path is not None
                    and id(statement) not in first
                    and not is_accumulation(target, statement.value)
                    and not is_cat(target, statement.value)
                ):
                    found.add(target.path)
                elif isinstance(target, ir.Sub) and isinstance(target.index, ir.Slice) and target.base.path:
                    found.add(target.base.path)
        elif isinstance(statement, ir.For) and (emptied := _emptied(statement)) is not None:
            found.add(emptied)
        elif isinstance(statement, ir.Delete):
            for target in statement.targets:
                base = target.base if isinstance(target, ir.Sub) else target
                if base.path is not None:
                    found.add(base.path)
        for expr in ir.own_parts(statement):
            if (
                isinstance(expr, ir.Call)
                and isinstance(expr.func, ir.Attr)
                and expr.func.base.path is not None
                and expr.method in _EMPTYING
            ):
                found.add(expr.func.base.path)
    return frozenset(found)


def _first_values(block: list[ir.Stmt]) -> frozenset[int]:
    """The assignments that only start a sum: `x = v` of `if x is None: x = v` `else: x = x + v`, by identity."""
    found: set[int] = set()
    for statement in ir.statements(block):
        if not isinstance(statement, ir.If) or is_periodic(statement.test):
            continue
        for one, other in ((statement.body, statement.orelse), (statement.orelse, statement.body)):
            grows = {target.path for part in ir.statements(other) for target in _growing(part)}
            asked = _asked_for_none(statement.test)
            for part in one:
                if isinstance(part, ir.Assign) and len(part.targets) == 1 and part.value is not None:
                    path = part.targets[0].path
                    if not isinstance(part.value, ir.Const) and path is not None:
                        if path in grows or (path == asked and one is statement.body):
                            found.add(id(part))
    return frozenset(found)


def _growing(statement: ir.Stmt) -> list[ir.Expr]:
    if isinstance(statement, ir.AugAssign):
        return [statement.target]
    if isinstance(statement, ir.Assign) and statement.value is not None:
        return [
            target
            for target in statement.targets
            if is_accumulation(target, statement.value) or is_cat(target, statement.value)
        ]
    return []


def is_periodic(test: ir.Expr) -> bool:
    """Whether a condition comes true in every so many rounds: `(step + 1) % every == 0`."""
    return any(isinstance(part, ir.Op) and part.op == "%" for part in ir.walk(test))


def _asked_for_none(test: ir.Expr) -> str | None:
    """`x` in `x is None`."""
    if isinstance(test, ir.Op) and test.op == "is" and isinstance(test.operands[1], ir.Const):
        return test.operands[0].path if test.operands[1].value is None else None
    return None


def assigned(block: list[ir.Stmt]) -> frozenset[str]:
    """The paths that the block binds, sums included."""
    return frozenset(
        target.path for statement in ir.statements(block) for target in targets(statement) if target.path
    )


def cuts(block: list[ir.Stmt], detachers: frozenset[str] = frozenset()) -> frozenset[str]:
    """The paths whose graph the block cuts somewhere: `h = h.detach()`, `h = repackage(h)`, `h.detach_()`, `h.data`."""
    found: set[str] = set()
    for statement in ir.statements(block):
        if (
            isinstance(statement, ir.Assign)
            and statement.value is not None
            and _cuts(statement.value, detachers)
        ):
            found |= {target.path for target in targets(statement) if target.path is not None}
        if isinstance(statement, ir.For) and (entries := _cut_entries(statement, detachers)) is not None:
            found.add(entries)
        for expr in ir.own_parts(statement):
            if (
                isinstance(expr, ir.Call)
                and expr.method in ("detach_", "detach_state")
                and isinstance(expr.func, ir.Attr)
            ):
                if expr.func.base.path is not None:
                    found.add(expr.func.base.path)
    return frozenset(found)


def _cut_entries(loop: ir.For, detachers: frozenset[str]) -> str | None:
    """`state` of `for key in state: state[key] = state[key].detach()`."""
    over = loop.iterable
    if isinstance(over, ir.Call) and over.method in ("items", "keys") and isinstance(over.func, ir.Attr):
        over = over.func.base
    elif isinstance(over, ir.Call) and over.method in ("list", "enumerate") and len(over.args) == 1:
        over = over.args[0]
    if over.path is None:
        return None
    names = {part.path for part in ir.walk(loop.target) if isinstance(part, ir.Name)}
    for statement in ir.statements(loop.body):
        if (
            isinstance(statement, ir.Assign)
            and statement.value is not None
            and _cuts(statement.value, detachers)
        ):
            for target in targets(statement):
                if (
                    isinstance(target, ir.Sub)
                    and target.base.path == over.path
                    and target.index.path in names
                ):
                    return over.path
    return None


def _cuts(value: ir.Expr, detachers: frozenset[str]) -> bool:
    for part in ir.walk(value):
        if isinstance(part, ir.Attr) and part.attr in ("detach", "data", "detach_"):
            return True
        if isinstance(part, ir.Call) and (
            "detach" in part.method or "repackage" in part.method or part.method in detachers
        ):
            return True
    return False


def is_cat(target: ir.Expr, value: ir.Expr) -> bool:
    """`x = torch.cat([x, y])` lets x grow."""
    value = grown(target, value) if isinstance(value, ir.Op) else value
    return (
        isinstance(value, ir.Call)
        and value.method in ("cat", "concat", "vstack", "hstack")
        and bool(value.args)
        and isinstance(value.args[0], ir.Seq)
        and any(item.path == target.path for item in value.args[0].items)
    )


def passes_graph_by(target: ir.Expr) -> bool:
    """Whether what is written into takes no graph in: `average.data`, `weight.grad`; but `self.data` is what an object
    calls its own."""
    return any(
        isinstance(part, ir.Attr)
        and part.attr in ("data", "grad", "detach")
        and part.path != f"self.{part.attr}"
        for part in ir.walk(target)
    )
