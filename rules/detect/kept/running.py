"""Buffers and running values that take in what has a graph: each update hangs one more graph on the last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.declared import registered
from gpulint.rules.detect.kept.graphs import Graphs, Tracing
from gpulint.rules.detect.kept.record import How, Kept, about
from gpulint.rules.detect.kept.traced import OPEN, PROVEN, REFUTED, Traced, joined

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import cuts, passes_graph_by, resets, targets
from gpulint.analysis.questions.repeats.once import fills_once
from gpulint.analysis.torch.keeping import LOSSLIKE
from gpulint.analysis.torch.normalizing import NORMALIZES, STATISTICS
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.program import FileAnalysis

_IN_PLACE = frozenset({"add_", "copy_", "lerp_", "addcmul_", "mul_"})


def running(file: FileAnalysis) -> list[Kept]:
    """The attributes of a file's classes, and the copies of parameters, that are updated with grad on."""
    tracing = Tracing(file)
    found: list[Kept] = []
    for function in file.module.functions:
        evidence = file.evidence[function]
        if (
            function.name in ("__init__", "<module>", "<lambda>")
            or file.grad_at_entry(function) is Grad.DISABLED
        ):
            continue
        info = file.class_of(function) if function.cls is not None else None
        if info is not None and function.params and _writes_own(function):
            found += _own(tracing.of(function), info)
        if evidence.called & {"named_parameters", "parameters"} and evidence.called & _IN_PLACE:
            found += _weights(tracing.of(function))
    return found


def _writes_own(function: ir.Function) -> bool:
    own = function.params[0].name
    for statement in ir.statements(function.body):
        for target, _ in updates(statement):
            if (_base(target).path or "").startswith(f"{own}."):
                return True
    return False


def updates(statement: ir.Stmt) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """What a statement writes into with the graph of what it takes in, as in `_written`."""
    for target, value in _written(statement):
        if not passes_graph_by(target):
            yield target, value


def _written(statement: ir.Stmt) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """What a statement writes into, keeping what was there or its history, and what it takes in: `t = a * t + v`,
    `t += v`, `t[i] = v`, `t.mul_(a).add_(v)`."""
    if isinstance(statement, ir.AugAssign):
        yield statement.target, statement.value
    elif isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if (
            (isinstance(target, ir.Sub) and isinstance(target.index, (ir.Slice, ir.Const)))
            or (isinstance(target, ir.Attr) and isinstance(value, ir.Op) and _mentions(value, target.path))
            or (isinstance(target, ir.Attr) and isinstance(value, ir.Call) and value.method == "lerp")
        ):
            yield target, value
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        if call.method in _IN_PLACE and isinstance(call.func, ir.Attr) and call.args:
            base: ir.Expr = call.func.base
            while isinstance(base, ir.Call) and base.method in _IN_PLACE and isinstance(base.func, ir.Attr):
                base = base.func.base
            yield base, call.args[1] if call.method == "addcmul_" and len(call.args) > 1 else call.args[0]


def _mentions(value: ir.Expr, path: str | None) -> bool:
    return path is not None and any(part.path == path for part in ir.walk(value))


def _base(target: ir.Expr) -> ir.Expr:
    while isinstance(target, ir.Sub):
        target = target.base
    return target


# --- an object's own -----------------------------------------------------------------------------------------------


def _own(graphs: Graphs, info: ClassInfo) -> Iterator[Kept]:
    function = graphs.function
    own = function.params[0].name
    buffers = _buffers(info)
    cut = cuts(function.body)
    for statement in ir.statements(function.body):
        for target, value in updates(statement):
            base = _base(target)
            path = base.path or ""
            attr = path.partition(".")[2]
            if not path.startswith(f"{own}.") or "." in attr or graphs.grad_at(statement) is Grad.DISABLED:
                continue
            if not info.is_module and isinstance(statement, ir.AugAssign) and not graphs.has_backward:
                continue  # a sum of what callers hand over
            if not _is_running(info, attr, buffers) or path in graphs.backwarded or path in graphs.parts:
                continue
            traced = _taken_in(graphs, value, path, statement)
            if traced.tensor is OPEN and isinstance(target, ir.Sub) and isinstance(target.index, ir.Slice):
                traced = replace(traced, tensor=PROVEN)  # only a tensor is written into so
            if traced.graph is REFUTED or (traced.tensor is not PROVEN and not traced.freed):
                continue
            answers = (
                *fills_once(function, statement, target.path or ""),
                *_answers(graphs, info, path, value, traced, cut, attr in buffers),
            )
            yield Kept(
                function, statement, value, path, How.AVERAGED, answers, traced.freed, scalar=traced.scalar
            )


def _buffers(info: ClassInfo) -> frozenset[str]:
    """The buffers that the class registers, and those of the layer of torch's that it is a version of."""
    own = registered(info.cls, "register_buffer")
    return own if NORMALIZES.isdisjoint(info.base_names) else own | STATISTICS


def _is_running(info: ClassInfo, attr: str, buffers: frozenset[str]) -> bool:
    """Whether an attribute is a buffer, or a plain tensor or number that a constructor has made: no parameter, which the
    optimizer updates, no container, no term of the loss."""
    if attr in registered(info.cls, "Parameter") or (
        LOSSLIKE.search(attr) and not attr.startswith("running")
    ):
        return False
    if attr in buffers:
        return True
    for part in info.ancestors():
        init = part.cls.methods.get("__init__")
        for statement in ir.statements(init.body) if init is not None else ():
            if isinstance(statement, ir.Assign) and statement.value is not None:
                if any((target.path or "").partition(".")[2] == attr for target in statement.targets):
                    value = statement.value
                    return (isinstance(value, ir.Const) and not isinstance(value.value, (str, bool))) or (
                        isinstance(value, ir.Call)
                        and value.method
                        in ("zeros", "ones", "tensor", "full", "zeros_like", "ones_like", "to", "cuda")
                    )
    method = info.method(attr)
    return method is not None and any(decorator.path == "property" for decorator in method.decorators)


def _taken_in(graphs: Graphs, value: ir.Expr, path: str, statement: ir.Stmt) -> Traced:
    """What goes in besides the running value itself."""
    stack, leaves = [value], []
    while stack:
        part = stack.pop()
        if isinstance(part, ir.Op) and part.op not in ("cmp", "if"):
            stack += part.operands
        elif part.path != path and not (isinstance(part, ir.Call) and part.method == "detach"):
            if not (isinstance(part, ir.Call) and _mentions(part, path) and part.method != "lerp"):
                leaves.append(part)
    found = [graphs.of(leaf, statement) for leaf in leaves if not isinstance(leaf, ir.Const)]
    sure = [one for one in found if one.tensor is PROVEN or one.freed] or found
    return joined(sure)


def _answers(
    graphs: Graphs,
    info: ClassInfo,
    path: str,
    value: ir.Expr,
    traced: Traced,
    cut: frozenset[str],
    is_buffer: bool,
) -> Iterator[Answer]:
    yield from about(traced, value)
    if graphs.grad_at(graphs.function.body[0]) is Grad.UNKNOWN:
        yield left_open(Question.GRAD, f"a caller of `{graphs.function.name}` may switch grad off")
    if path in cut or any(path in cuts(method.body) for method in info.cls.methods.values()):
        yield refuted(Question.GRAPH, f"`{path}` is detached again")
    if _starts_afresh(graphs.function, path):
        yield refuted(Question.OUTLIVES, f"`{path}` is made anew in the same call")
    elif any(
        path in resets(method.body)
        for method in info.cls.methods.values()
        if method.name != "__init__" and method is not graphs.function
    ):
        yield refuted(Question.OUTLIVES, f"another method starts `{path}` anew")
    elif is_buffer:
        yield proven(Question.OUTLIVES, f"`{path}` is a buffer, which lives as long as the module")
    else:
        yield proven(Question.OUTLIVES, f"`{path}` belongs to the object, and each update builds on the last")
    if not is_buffer and not info.is_module and not traced.freed and not graphs.has_backward:
        yield left_open(Question.BACKWARD, f"a backward elsewhere may go through `{path}`")


def _starts_afresh(function: ir.Function, path: str) -> bool:
    """Whether the function itself sets it to something that does not build on what was there."""
    return any(
        isinstance(statement, ir.Assign)
        and statement.value is not None
        and any(target.path == path for target in targets(statement))
        and not _mentions(statement.value, path)
        and statement in function.body
        for statement in ir.statements(function.body)
    )


# --- weights -------------------------------------------------------------------------------------------------------


def _weights(graphs: Graphs) -> Iterator[Kept]:
    """`average.add_(p)` in a loop over parameters."""
    for loop in ir.statements(graphs.function.body):
        if not isinstance(loop, ir.For):
            continue
        for statement in ir.statements(loop.body):
            if not isinstance(statement, ir.ExprStmt) or graphs.grad_at(statement) is not Grad.ENABLED:
                continue
            for target, value in updates(statement):
                if any(
                    isinstance(part, ir.Attr) and part.attr in ("data", "grad") for part in ir.walk(target)
                ):
                    continue
                traced = graphs.of(value, statement)
                own = graphs.of(target, statement)
                if "parameter of a network" not in traced.why or traced.graph is not PROVEN:
                    continue
                if own.graph is PROVEN or (own.graph is REFUTED and own.cut):
                    continue  # a leaf that requires grad cannot be written in place; a detached one is the average's own
                answers = (
                    proven(Question.GRAPH, traced.why, value),
                    proven(Question.OUTLIVES, "an average of weights is updated all through the training"),
                    *(
                        (left_open(Question.TENSOR, "what it is updated from may be a copy without a graph"),)
                        if own.tensor is OPEN
                        else ()
                    ),
                )
                holder = target.path or _base(target).path or "the average"
                yield Kept(graphs.function, statement, value, holder, How.AVERAGED, answers)
