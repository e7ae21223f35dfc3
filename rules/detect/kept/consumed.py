"""Losses, and dicts and tuples of them, that are put by in the loop whose backward goes through them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.graphs import Graphs, Tracing
from gpulint.rules.detect.kept.record import How, Kept, about
from gpulint.rules.detect.kept.traced import OPEN, PROVEN

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_accumulation, pairs, passes_graph_by, resets, targets
from gpulint.analysis.questions.backward.read_as_data import only_data_read
from gpulint.analysis.questions.grad.no_graph import becomes_array_undetached
from gpulint.analysis.questions.outlives.periods import few_nodes
from gpulint.analysis.values.values import Grad
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
        if evidence.has_loop and evidence.backward:
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
                        traced = graphs.of(value, statement)
                        if traced.graph is not PROVEN and not traced.freed:
                            continue
                        if how is How.LISTED and not is_collection(graphs, path):
                            continue
                        answers = tuple(_answers(graphs, loop, statement, path, value, emptied))
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
        elif not passes_graph_by(statement.target):
            yield statement.target, statement.value, How.SUMMED
    elif isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        sums = isinstance(value, ir.Op) and value.op == "+" and is_accumulation(target, value)
        if isinstance(value, ir.Op) and sums and not passes_graph_by(target):
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
    graphs: Graphs,
    loop: ir.For | ir.While,
    statement: ir.Stmt,
    path: str,
    value: ir.Expr,
    emptied: frozenset[str],
) -> Iterator[Answer]:
    if graphs.grad_at(statement) is Grad.DISABLED and not isinstance(value, (ir.Name, ir.Attr)):
        yield refuted(Question.GRAD, "grad is off there")
    if isinstance(statement, ir.AugAssign) and graphs.grad_at(statement) is Grad.DISABLED:
        yield refuted(Question.GRAD, "grad is off where it is added")
    traced = graphs.of(value, statement)
    yield from about(traced, value)
    yield from _of_flow(graphs, statement, path)
    if traced.freed and (few := _few_nodes(graphs, loop, statement, path)) is not None:
        yield few
    if path in graphs.backwarded or path in graphs.parts or _feeds(graphs, path):
        yield refuted(Question.BACKWARD, f"a later backward goes through `{path}`")
    if _goes_in_again(graphs, statement, path, value):
        yield refuted(Question.BACKWARD, f"what is in `{path}` is state that goes into the next forward")
    root = path.partition("[")[0]
    if path in emptied or root in emptied:
        yield refuted(Question.OUTLIVES, f"`{root}` is emptied or made anew in the loop")
    elif "." not in root and not _is_bound_before(graphs, root, loop):
        yield refuted(Question.OUTLIVES, f"`{root}` is not seen to be made before the loop")
    else:
        yield proven(Question.OUTLIVES, f"`{root}` is made before the loop, and grows with every round")
    if _is_short(loop):
        yield left_open(Question.REPEATS, "the loop may run a few rounds only", loop)


def _goes_in_again(graphs: Graphs, statement: ir.Stmt, path: str, value: ir.Expr) -> bool:
    """`out, h = net(x, states[-1]); states.append(h)`: the next result has the graph of the last state behind it anyhow."""
    definitions = graphs.definitions.reaching(value.path, statement)[0] if value.path is not None else ()
    return any(
        isinstance(part, (ir.Sub, ir.Name)) and (part.base if isinstance(part, ir.Sub) else part).path == path
        for definition in definitions
        if isinstance(definition.value, ir.Call)
        for arg in (*definition.value.args, *(given for _, given in definition.value.keywords))
        for part in ir.walk(arg)
    )


def _of_flow(graphs: Graphs, statement: ir.Stmt, path: str) -> Iterator[Answer]:
    """What the flow of values knows of the same hold, whatever it knows of the value."""
    facts = graphs.file.facts.get(graphs.function)
    for hold in facts.holds if facts is not None else ():
        if hold.stmt is not statement:
            continue
        if hold.graph.consumed or hold.graph.feeds_backward or hold.graph.fed_back:
            yield refuted(Question.BACKWARD, f"a later backward goes through `{path}`")
        anew = hold.rounds.birth_loop is not None and hold.rounds.birth_loop.steps
        if hold.rounds.bounded or hold.rounds.within_step or hold.in_few_rounds or anew:
            yield refuted(Question.OUTLIVES, f"`{path}` is bounded, or a local sum within one step")
        if hold.on_host:
            yield refuted(Question.DEVICE, "what is held is computed on the CPU")
    if "." not in path and becomes_array_undetached(graphs.function, path):
        yield refuted(Question.GRAPH, f"`{path}` becomes an array as it is, which nothing with a graph does")
    if not graphs.definitions.owners(statement) or _is_of_micro_batches(graphs, statement):
        yield refuted(Question.OUTLIVES, "a local sum over the micro-batches of one step")


def _few_nodes(graphs: Graphs, loop: ir.For | ir.While, statement: ir.Stmt, path: str) -> Answer | None:
    """Whether the nodes of freed graphs pile up in what is made before the loop, by the loops around that."""
    inner = graphs.file.loops.get(id(loop))
    if inner is None:
        return None
    birth, root = inner.parent, path.partition("[")[0]
    while birth is not None and root not in resets(birth.stmt.body):
        birth = birth.parent
    return few_nodes(graphs.file, statement, path, (inner,), birth)


def _is_of_micro_batches(graphs: Graphs, statement: ir.Stmt) -> bool:
    """Whether the optimizer steps only after the loop, and what is added is local to it."""
    loop = next(
        (one for one in graphs.definitions.owners(statement) if isinstance(one, (ir.For, ir.While))), None
    )
    if loop is None:
        return False
    inside = any(call.method == "step" for _, call in ir.calls(loop.body))
    after = any(
        call.method == "step" and isinstance(call.func, ir.Attr) and "opt" in (call.func.base.path or "")
        for later in graphs.definitions.after(loop)
        for call in ir.own_calls(later)
    )
    return after and not inside


_COLLECTIONS = frozenset({"list", "deque", "defaultdict", "dict", "OrderedDict"})


def is_collection(graphs: Graphs, path: str) -> bool:
    """Whether a name, or an attribute of the object, is made a list or a dict of lists somewhere in sight."""
    functions = (
        graphs.function.cls.methods.values() if graphs.function.cls is not None and "." in path else ()
    )
    attr = path.rpartition(".")[2]
    for function in (*functions, graphs.function, graphs.file.module.body):
        for statement in ir.statements(function.body):
            if isinstance(statement, ir.Assign) and statement.value is not None:
                for target, value in pairs(statement):
                    if target.path == path or (
                        "." in path and (target.path or "").rpartition(".")[2] == attr
                    ):
                        if _makes_collection(value):
                            return True
    return False


def _makes_collection(value: ir.Expr) -> bool:
    if isinstance(value, ir.Call):
        return value.method in _COLLECTIONS
    return isinstance(value, (ir.Comp, ir.DictDisplay)) or (
        isinstance(value, ir.Seq) and value.kind == "list"
    )


def _feeds(graphs: Graphs, path: str) -> bool:
    """Whether something that goes backward is computed from the holder."""
    for statement in ir.statements(graphs.function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            bound = {target.path for target in targets(statement)}
            if bound & graphs.backwarded and path not in bound:
                if any(part.path == path for part in ir.walk(statement.value)):
                    return True
    return False


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


# --- rollouts ------------------------------------------------------------------------------------------------------


def read_without_graph(file: FileAnalysis) -> list[Kept]:
    """What loops that do not train put by of a network's outputs, where all that the function does with it later is to take
    its data: `steps.append([state, value])`, `value.data`."""
    tracing = Tracing(file)
    found: list[Kept] = []
    for function in file.module.functions:
        evidence = file.evidence[function]
        if evidence.has_loop and "append" in evidence.called:
            for loop in ir.statements(function.body):
                if isinstance(loop, (ir.For, ir.While)) and not _is_step(loop):
                    found += _of_rounds(tracing.of(function), loop)
    return found


def _of_rounds(graphs: Graphs, loop: ir.For | ir.While) -> Iterator[Kept]:
    for statement in loop.body:
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        holder = call.func.base if isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) else None
        if not isinstance(call, ir.Call) or call.method != "append" or len(call.args) != 1:
            continue
        if not isinstance(holder, ir.Name) or not is_collection(graphs, holder.id):
            continue
        given = call.args[0]
        for place, item in enumerate(given.items if isinstance(given, ir.Seq) else ()):
            traced, unseen = graphs.of(item, statement), list(_by_unseen_method(graphs, item, statement))
            shown = traced.graph is PROVEN or (traced.graph is OPEN and bool(unseen))
            if shown and not traced.freed and only_data_read(graphs.function, holder.id, place):
                answers = (
                    *([proven(Question.GRAPH, traced.why, item)] if traced.graph is PROVEN else unseen),
                    proven(Question.BACKWARD, "all that is done with it later is to take its data"),
                    proven(Question.OUTLIVES, f"`{holder.id}` is filled by all rounds before it is read"),
                )
                yield Kept(graphs.function, item, item, holder.id, How.LISTED, answers)
                break


def _by_unseen_method(graphs: Graphs, item: ir.Expr, statement: ir.Stmt) -> Iterator[Answer]:
    """`values = self.critic.predict(states)`: what a method of a network gives may be cut off in it."""
    definitions = graphs.definitions.reaching(item.path, statement)[0] if item.path is not None else []
    for definition in definitions:
        call = definition.value
        owner = call.func.base.path if isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) else None
        if not isinstance(call, ir.Call) or owner is None:
            continue
        if graphs.file.treated_as_module(graphs.function, owner):
            called = f"`{owner}.{call.method}`"
            trained = _trained_through(graphs, call)
            if trained is not None:
                yield proven(
                    Question.GRAPH, f"a backward goes through what {called} gives elsewhere", trained
                )
            else:
                yield left_open(Question.GRAPH, f"{called} may cut off what it gives")


def _trained_through(graphs: Graphs, call: ir.Call) -> ir.Stmt | None:
    """`v = self.critic.predict(x); loss = (returns - v).pow(2).mean(); loss.backward()`: where the loss is made of what the same
    call gives, and of nothing else that a network does."""
    function, backward = graphs.function, graphs.file.evidence[graphs.function].backward
    made: dict[str, bool] = {}  # names of what networks give, and whether this call gave it
    for statement in ir.statements(function.body):
        if not isinstance(statement, ir.Assign) or not isinstance(statement.value, ir.Call):
            continue
        func = statement.value.func
        base = func.base.path if isinstance(func, ir.Attr) else func.path
        if base is not None and graphs.file.treated_as_module(function, base):
            names = {part.path for target in statement.targets for part in ir.walk(target) if part.path}
            made |= dict.fromkeys(names, func.path == call.func.path and statement.value is not call)
    for statement in ir.statements(function.body):
        if not isinstance(statement, ir.Assign) or statement.value is None:
            continue
        if not any(target.path in backward for target in statement.targets):
            continue
        parts = list(ir.walk(statement.value))
        cut = any(isinstance(part, (ir.Attr, ir.Call)) and _cuts(part) for part in parts)
        used = {part.path for part in parts if part.path in made}
        if used and not cut and all(made[name] for name in used if name is not None):
            return statement
    return None


def _cuts(part: ir.Attr | ir.Call) -> bool:
    return (part.attr if isinstance(part, ir.Attr) else part.method) in ("data", "detach", "item", "numpy")
