"""Attributes and caches of an object that keep what was computed with grad on: until the next call, or for good."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.graphs import Graphs, Tracing
from gpulint.rules.detect.kept.record import How, Kept, about, called_with_grad
from gpulint.rules.detect.kept.statistics import is_cut
from gpulint.rules.detect.kept.traced import PROVEN, REFUTED

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.questions.outlives.emptied import emptied
from gpulint.analysis.torch.keeping import LOSSLIKE
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import TO_HOST
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.program import FileAnalysis

# What is made of sizes and constants, by its name: it has no graph.
_CONSTANT = re.compile(
    r"(?i)mask|pos|index|indices|grid|anchor|freq|cos|sin|rope|rotary|cu_seq|window|shape|size|device|dtype|len|step|"
    r"iter|count|optim|sched|config|param|name|file|handle|hook|model|net$|module|layer|stream|event|generator|seed|scale$"
)
_CACHE = re.compile(r"(?i)cache|memo|precomput|stored|saved")
# The words of a switch that asks for something to be recorded.
_RECORDING = re.compile(
    r"(?i)store|record|save|stat|collect|keep|track|log|monitor|debug|visuali|vis$|return_att|output_att"
)


def stored(file: FileAnalysis) -> list[Kept]:
    """What methods store on their object with a graph."""
    tracing = Tracing(file)
    found: list[Kept] = []
    for info in file.classes.values():
        for method in info.cls.methods.values():
            if method.name in ("__init__", "__setstate__", "reset") or not method.params:
                continue
            if file.evidence[method].stored:
                graphs = tracing.of(method)
                found += _memos(graphs, info)
                found += _recorded(graphs, info)
    return found


def _own_assignments(graphs: Graphs) -> Iterator[tuple[ir.Assign, ir.Attr, ir.Expr]]:
    own = graphs.function.params[0].name
    for statement in ir.statements(graphs.function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ir.Attr) and isinstance(target.base, ir.Name) and target.base.id == own:
                yield statement, target, statement.value


# --- computed once, kept for the next call -------------------------------------------------------------------------


def _memos(graphs: Graphs, info: ClassInfo) -> Iterator[Kept]:
    for statement, target, value in _own_assignments(graphs):
        path = target.path or ""
        guard = _guard_of(graphs, statement, path, target.attr)
        if (
            guard is None
            or isinstance(value, ir.Const)
            or _CONSTANT.search(target.attr)
            or path in graphs.backwarded
        ):
            continue
        traced = graphs.of(value, statement)
        if traced.graph is REFUTED:
            continue
        if traced.graph is not PROVEN and not (
            _CACHE.search(target.attr) and isinstance(value, ir.Call) and info.is_module
        ):
            continue
        answers = (
            *about(traced, value),
            *called_with_grad(graphs),
            emptied(graphs.file, info, path, graphs.function)
            or proven(Question.OUTLIVES, f"`{path}` is computed once and used by later calls", guard),
            *_reads_with_graph(graphs.file, graphs.function, target.attr, memo=True),
        )
        yield Kept(graphs.function, statement, value, path, How.CACHED, answers, scalar=traced.scalar)


def _guard_of(graphs: Graphs, statement: ir.Stmt, path: str, attr: str) -> ir.Stmt | None:
    """The `if self.x is None`, or `if not hasattr(self, "x")`, around a statement."""
    for owner in graphs.definitions.owners(statement):
        if not isinstance(owner, ir.If) or not any(inner is statement for inner in ir.statements(owner.body)):
            continue
        for part in ir.walk(owner.test):
            if isinstance(part, ir.Op) and part.op == "is" and part.operands[0].path == path:
                return owner
            if isinstance(part, ir.Op) and part.op == "not":
                inner = part.operands[0]
                named = isinstance(inner, ir.Call) and inner.method == "hasattr" and len(inner.args) > 1
                if named and isinstance(inner.args[1], ir.Const) and inner.args[1].value == attr:  # type: ignore[attr-defined]
                    return owner
    return None


# --- recorded ------------------------------------------------------------------------------------------------------


def _recorded(graphs: Graphs, info: ClassInfo) -> Iterator[Kept]:
    """What a module's forward stores by the way, and nobody but a statistic reads."""
    if not info.is_module or info.is_lightning or graphs.grad_at(graphs.function.body[0]) is Grad.DISABLED:
        return
    for statement, target, value in _own_assignments(graphs):
        path = target.path or ""
        if (
            isinstance(value, ir.Const)
            or is_cut(value)
            or _CONSTANT.search(target.attr)
            or path in graphs.backwarded
        ):
            continue
        if _guard_of(graphs, statement, path, target.attr) is not None or LOSSLIKE.search(target.attr):
            continue
        if target.attr in info.backward or any(part.path == path for part in ir.walk(value)):
            continue
        asked = _is_asked_for(graphs, statement)
        traced = graphs.of(value, statement)
        if (
            traced.graph is REFUTED
            or traced.tensor is not PROVEN
            or not (asked or graphs.function.name == "forward")
        ):
            continue
        if not asked and not _is_read_as_number(graphs.file, target.attr):
            continue
        reads = tuple(_reads_with_graph(graphs.file, graphs.function, target.attr, memo=False, asked=asked))
        answers = (
            *about(traced, value),
            *reads,
            left_open(
                Question.OUTLIVES,
                f"the next call overwrites `{path}`: it is the graph of one call that stays",
            ),
            left_open(Question.REACHED, "where a backward follows each call, little is left of that graph"),
        )
        yield Kept(graphs.function, statement, value, path, How.STORED, answers, scalar=traced.scalar)


def _is_asked_for(graphs: Graphs, statement: ir.Stmt) -> bool:
    """`if self.store_activity:` around it."""
    return any(
        isinstance(owner, ir.If)
        and any(_RECORDING.search(part.path or "") for part in ir.walk(owner.test) if part.path)
        for owner in graphs.definitions.owners(statement)
    )


def _is_read_as_number(file: FileAnalysis, attr: str) -> bool:
    """Whether the file reads numbers off an attribute: `self.activity.mean().item()`."""
    return any(
        isinstance(part, ir.Attr) and part.attr == attr and _reads_number(above)
        for function in file.module.functions
        if attr in file.evidence[function].words
        for statement in ir.statements(function.body)
        for root in statement.expressions()
        for part, above in _with_above(root)
    )


def _reads_with_graph(
    file: FileAnalysis, writer: ir.Function, attr: str, memo: bool, asked: bool = False
) -> Iterator[Answer]:
    """Whether somebody computes with the attribute: then its graph may be wanted."""
    read = cut = False
    for function in file.module.functions:
        for statement in ir.statements(function.body):
            written = {id(target) for target in targets(statement)}
            for root in statement.expressions():
                for part, above in _with_above(root):
                    if isinstance(part, ir.Attr) and part.attr == attr and id(part) not in written:
                        if _is_question(above):
                            continue
                        if _reads_number(above):
                            cut = True
                        elif not (memo and function is writer):
                            read = True
    if memo:
        return
    if read and asked:
        yield left_open(Question.BACKWARD, f"`{attr}` is computed with, and a backward may go through that")
    elif read:
        yield refuted(Question.BACKWARD, f"`{attr}` is read with its graph, and a backward may go through it")
    elif not cut and _is_read_elsewhere(file, attr):
        yield left_open(Question.BACKWARD, f"another file reads `{attr}`, and may go backward through it")
    else:
        yield proven(Question.BACKWARD, f"nothing that is seen computes with `{attr}`")


def _is_read_elsewhere(file: FileAnalysis, attr: str) -> bool:
    if file.project is None:
        return True
    return file.project.contains(file.filename, re.compile(rb"\.%s\b(?!\s*=[^=])" % attr.encode()))


def _with_above(root: ir.Expr) -> Iterator[tuple[ir.Expr, tuple[ir.Expr, ...]]]:
    stack: list[tuple[ir.Expr, tuple[ir.Expr, ...]]] = [(root, ())]
    while stack:
        expr, above = stack.pop()
        yield expr, above
        stack += [(child, (*above, expr)) for child in expr.children()]


def _reads_number(above: tuple[ir.Expr, ...]) -> bool:
    return any(
        (
            isinstance(part, ir.Attr)
            and (part.attr in ("data", "shape") or part.attr in NO_GRAPH or part.attr in TO_HOST)
        )
        or (isinstance(part, ir.Call) and part.method in ("float", "print", "format"))
        or isinstance(part, ir.Text)
        for part in above
    )


def _is_question(above: tuple[ir.Expr, ...]) -> bool:
    return any(isinstance(part, ir.Op) and part.op in ("is", "is not", "cmp", "not") for part in above)
