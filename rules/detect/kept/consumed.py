"""Losses, and dicts and tuples of them, that are put by in the loop whose backward goes through them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.graphs import PROVEN, Graphs, Tracing
from gpulint.rules.detect.kept.record import How, Kept, about

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_accumulation, resets, targets
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_ADDING = frozenset({"append", "extend", "appendleft"})


def consumed(file: FileAnalysis) -> list[Kept]:
    """What loops that train put by of what their backward goes through."""
    tracing = Tracing(file)
    found: list[Kept] = []
    for function in file.module.functions:
        evidence = file.evidence[function]
        if evidence.has_loop and (evidence.backward or evidence.terms) and evidence.accumulates:
            found += _in_function(tracing.of(function))
    return found


def _in_function(graphs: Graphs) -> Iterator[Kept]:
    for loop in ir.statements(graphs.function.body):
        if isinstance(loop, (ir.For, ir.While)) and _is_step(loop):
            emptied = resets(loop.body)
            for statement in ir.statements(loop.body):
                for holder, value, how in puts(statement):
                    path = holder.path or ""
                    if path and _innermost(graphs, statement, loop):
                        answers = tuple(_answers(graphs, loop, statement, path, value, emptied))
                        traced = graphs.of(value, statement)
                        yield Kept(
                            graphs.function,
                            value if how is How.LISTED else statement,
                            value,
                            path,
                            how,
                            answers,
                            freed=traced.freed,
                            scalar=traced.scalar,
                        )


def _is_step(loop: ir.For | ir.While) -> bool:
    return any("backward" in call.method for _, call in ir.calls(loop.body))


def _innermost(graphs: Graphs, statement: ir.Stmt, loop: ir.Stmt) -> bool:
    """Whether it is the innermost loop with a backward around the statement."""
    for owner in graphs.definitions.owners(statement):
        if isinstance(owner, (ir.For, ir.While)) and _is_step(owner):
            return owner is loop
    return False


def puts(statement: ir.Stmt) -> Iterator[tuple[ir.Expr, ir.Expr, How]]:
    """What a statement adds to something: the holder, what it is given, and how."""
    if isinstance(statement, ir.AugAssign) and statement.op == "+":
        if isinstance(statement.value, ir.Seq):
            for item in statement.value.items:
                yield _owner(statement.target), item, How.LISTED
        else:
            yield statement.target, statement.value, How.SUMMED
    elif isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if is_accumulation(target, value) and isinstance(value, ir.Op) and value.op == "+":
            for part in value.operands:
                if part.path != target.path and not is_accumulation(target, part):
                    scaled = not any(other.path == target.path for other in value.operands)
                    yield target, part, How.AVERAGED if scaled else How.SUMMED
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        if call.method in _ADDING and isinstance(call.func, ir.Attr) and len(call.args) == 1:
            given = call.args[0]
            for item in given.items if isinstance(given, ir.Seq) else (given,):
                yield _owner(call.func.base), item, How.LISTED


def _owner(expr: ir.Expr) -> ir.Expr:
    """`rows` of `rows[key].append(x)`."""
    while isinstance(expr, ir.Sub):
        expr = expr.base
    return expr


def _answers(
    graphs: Graphs, loop: ir.For | ir.While, statement: ir.Stmt, path: str, value: ir.Expr, emptied: frozenset[str]
) -> Iterator[Answer]:
    yield from about(graphs.of(value, statement), value)
    if path in graphs.backwarded or path in graphs.parts or _feeds(graphs, path, loop):
        yield refuted(Question.BACKWARD, f"a later backward goes through `{path}`")
    root = path.partition("[")[0]
    if path in emptied or root in emptied or _is_made_in(loop, root):
        yield refuted(Question.OUTLIVES, f"`{root}` is emptied or made anew in the loop")
    elif "." not in root and not _is_bound_before(graphs, root, loop):
        yield refuted(Question.OUTLIVES, f"`{root}` is not seen to be made before the loop")
    else:
        yield proven(Question.OUTLIVES, f"`{root}` is made before the loop, and grows with every round")
    if _is_short(loop):
        yield left_open(Question.REPEATS, "the loop may run a few rounds only", loop)


def _feeds(graphs: Graphs, path: str, loop: ir.Stmt) -> bool:
    """Whether something that goes backward is computed from the holder."""
    for statement in ir.statements(graphs.function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            bound = {target.path for target in targets(statement)}
            if bound & graphs.backwarded and path not in bound:
                if any(part.path == path for part in ir.walk(statement.value)):
                    return True
    return False


def _is_made_in(loop: ir.For | ir.While, root: str) -> bool:
    return any(
        isinstance(statement, ir.Assign)
        and any(target.path == root for target in targets(statement))
        and not any(part.path == root for part in ir.walk(statement.value))
        for statement in ir.statements(loop.body)
        if not isinstance(statement, ir.Assign) or statement.value is not None
    )


def _is_bound_before(graphs: Graphs, root: str, loop: ir.Stmt) -> bool:
    definitions, outside = graphs.definitions.reaching(root, loop)
    return bool(definitions) or (outside and any(param.name == root for param in graphs.function.params))


def _is_short(loop: ir.For | ir.While) -> bool:
    """`for k in range(3)`: so many rounds as the text says."""
    iterable = loop.iterable if isinstance(loop, ir.For) else None
    if isinstance(iterable, ir.Seq):
        return True
    return (
        isinstance(iterable, ir.Call)
        and iterable.method == "range"
        and all(isinstance(arg, ir.Const) for arg in iterable.args)
    )
