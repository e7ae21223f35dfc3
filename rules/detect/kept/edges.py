"""Keepers at the edge of a library or class: metrics, reporters and storages that add up or put by what they are handed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.callers import CallSite, call_sites, is_followed
from gpulint.rules.detect.kept.consumed import puts
from gpulint.rules.detect.kept.graphs import Graphs, Tracing
from gpulint.rules.detect.kept.record import How, Kept, about
from gpulint.rules.detect.kept.traced import OPEN, PROVEN, REFUTED, UNKNOWN, Traced

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets, targets
from gpulint.analysis.questions.reached.siblings import detached_by_siblings
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.keeping import COUNTS, LOSSLIKE, REPLAYS, TAKES_IN
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import HOST_ATTRS, NUMERIC_SINKS
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.program import FileAnalysis


def edges(file: FileAnalysis) -> list[Kept]:
    """What methods keep of their parameters, or of what they compute from them."""
    tracing = Tracing(file)
    found: list[Kept] = []
    shared = frozenset(_module_lists(file))
    for function in file.module.functions:
        if function is file.module.body or len(function.params) < 1:
            continue
        info = file.class_of(function) if function.cls is not None else None
        if info is not None and _collects(file, info, function):
            found += _in_method(tracing, info, function)
        elif shared and function.cls is None:
            found += _in_storage(tracing, function, shared)
    return found


# --- classes -------------------------------------------------------------------------------------------------------


def _collects(file: FileAnalysis, info: ClassInfo, function: ir.Function) -> bool:
    """Whether a method of a class may take in values call after call, for figures and not for a gradient to come."""
    if not file.evidence[function].accumulates or function.name in ("__init__", "forward", "reset"):
        return False
    if info.is_lightning or info.is_hf_trainer:
        return False
    halves = frameworks.METRIC_HALVES.get(function.name, frozenset())
    is_half = any(info.method(other) is not None for other in halves)
    if info.is_module and not is_half and not _has_halves(info):
        return False
    if info.backward or REPLAYS.search(info.cls.name):
        return False
    words = set().union(*(file.evidence[method].words for method in info.cls.methods.values()))
    if any("backward" in word or word in ("optimizer", "zero_grad", "optim") for word in words):
        return False
    named = any(
        COUNTS.search(name)
        for name in (info.cls.name, *(base.rpartition(".")[2] for base in info.base_names))
    )
    return bool(TAKES_IN.match(function.name)) and (named or is_half or _has_halves(info))


def _has_halves(info: ClassInfo) -> bool:
    """Whether it is made to be fed, asked and emptied: `reset`, and `compute`, `avg` or the like beside it."""
    names = set(info.cls.methods)
    return bool(names & {"reset", "_reset", "clear"}) and bool(
        names
        & {
            "compute",
            "result",
            "avg",
            "average",
            "mean",
            "value",
            "get",
            "summary",
            "summarize",
            "report",
            "get_metric",
        }
    )


def _in_method(tracing: Tracing, info: ClassInfo, function: ir.Function) -> Iterator[Kept]:
    own = function.params[0].name
    graphs = tracing.of(function)
    for statement in ir.statements(function.body):
        for holder, value, how in puts(statement):
            path = _path_of(holder)
            if not path.startswith(f"{own}.") or path.count(".") != 1:
                continue
            for part in _tensors(value):
                traced = graphs.of(part, statement)
                given = _given(graphs, part)
                if traced.graph is REFUTED or not given or traced.freed:
                    continue
                if traced.tensor is not PROVEN and not _is_sought(part):
                    continue
                answers = tuple(_answers(tracing, info, function, path, part, traced, given))
                at = part if how is How.LISTED else statement
                yield Kept(function, at, part, path, how, answers, scalar=traced.scalar)
                break


def _path_of(holder: ir.Expr) -> str:
    while isinstance(holder, ir.Sub):
        holder = holder.base
    return holder.path or ""


def _tensors(value: ir.Expr) -> Iterator[ir.Expr]:
    """The value, and those in a tuple, a dict or a product of it."""
    if isinstance(value, ir.Seq):
        for item in value.items:
            yield from _tensors(item)
    elif isinstance(value, ir.DictDisplay):
        for _, item in value.pairs:
            yield from _tensors(item)
    else:
        yield value


def _given(graphs: Graphs, expr: ir.Expr) -> frozenset[str]:
    """The parameters that an expression is made from, also by way of names."""
    names = {param.name for param in graphs.function.params[1 if graphs.function.cls is not None else 0 :]}
    reached = set(_with_graph(expr))
    for _ in range(3):
        for statement in ir.statements(graphs.function.body):
            value = getattr(statement, "value", None) or getattr(statement, "iterable", None)
            if value is not None and any(target.path in reached for target in targets(statement)):
                reached |= set(_with_graph(value))
    return frozenset(reached & names)


def _with_graph(expr: ir.Expr) -> Iterator[str]:
    """The names whose graph a value may have: not those of which it only takes a number, `len(predicted)`, `x.size(0)`."""
    if isinstance(expr, ir.Name):
        yield expr.id
    elif (isinstance(expr, ir.Attr) and expr.attr in HOST_ATTRS) or (
        isinstance(expr, ir.Call) and (expr.func.path in NUMERIC_SINKS or expr.method in NO_GRAPH)
    ):
        return
    else:
        for part in expr.children():
            yield from _with_graph(part)


def _is_sought(expr: ir.Expr) -> bool:
    """Whether a value of unknown kind is called a loss."""
    return any(
        isinstance(part, ir.Name)
        and LOSSLIKE.search(part.id) is not None
        and not part.id.endswith(("_fn", "_name", "_type"))
        for part in ir.walk(expr)
    )


def _answers(
    tracing: Tracing,
    info: ClassInfo,
    function: ir.Function,
    path: str,
    value: ir.Expr,
    traced: Traced,
    given: frozenset[str],
) -> Iterator[Answer]:
    base = _guarded_by_library(info)
    if base:
        yield refuted(Question.GRAD, f"`{base}` runs `{function.name}` with grad off")
    yield from about(_by_callers(tracing, function, traced, given), value)
    if _is_bounded(info, path):
        yield refuted(Question.OUTLIVES, f"`{path}` drops what is old")
    elif _is_reset(info, path):
        yield proven(Question.OUTLIVES, f"`{path}` grows from call to call until it is reset")
    else:
        yield left_open(Question.OUTLIVES, f"where `{path}` is emptied is not seen")


def _guarded_by_library(info: ClassInfo) -> str:
    """torchmetrics runs `update` with grad off, unless the metric says that it can be differentiated."""
    for base in info.base_names:
        if base.startswith("torchmetrics.") and not _says_differentiable(info):
            return base.rpartition(".")[0] or base
    return ""


def _says_differentiable(info: ClassInfo) -> bool:
    return any(
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Const)
        and statement.value.value is True
        and any(target.path == "is_differentiable" for target in statement.targets)
        for statement in info.cls.body
    )


def _by_callers(tracing: Tracing, function: ir.Function, traced: Traced, given: frozenset[str]) -> Traced:
    """The value in the light of what the callers hand over."""
    if traced.graph is not OPEN:
        return traced
    sites = call_sites(tracing.file, function)
    found = [one for site in sites for one in _handed(tracing, function, site, given)]
    if found and all(one.graph is REFUTED for one in found):
        return replace(
            traced, graph=REFUTED, why="each caller that is seen hands over numbers, or what is detached"
        )
    if any(one.graph is PROVEN for one in found):
        if is_followed(tracing.file, function) or _is_held_by_flow(tracing.file, function):
            return replace(traced, graph=REFUTED, why="it is told where the value is handed over")
        return replace(traced, graph=PROVEN, tensor=PROVEN, why="a caller hands over a value with its graph")
    like = detached_by_siblings(tracing.file, function) if traced.tensor is PROVEN else ""
    if like:
        return replace(traced, graph=PROVEN, why=f"`{like}`, of the same base, detaches what it is handed")
    return traced


def _is_held_by_flow(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether the flow of values has come by what the function keeps, with a graph."""
    return any(
        hold.place.keep is not None and hold.place.keep.function is function and hold.value.kind is Kind.GRAPH
        for facts in file.function_facts
        for hold in facts.holds
    )


def _handed(
    tracing: Tracing, function: ir.Function, site: CallSite, given: frozenset[str]
) -> Iterator[Traced]:
    graphs = tracing.of(site.function)
    params = function.params[1:] if function.cls is not None else function.params
    for number, param in enumerate(params):
        if param.name in given:
            argument = site.call.argument(number, param.name)
            if argument is not None:
                yield graphs.of(argument, site.stmt)
            elif any(isinstance(arg, ir.Starred) for arg in site.call.args) or any(
                key is None for key, _ in site.call.keywords
            ):
                yield UNKNOWN


def _is_bounded(info: ClassInfo, path: str) -> bool:
    """Whether it is a deque of so many places, or the class cuts it to a length."""
    attr = path.partition(".")[2]
    for method in info.cls.methods.values():
        for statement in ir.statements(method.body):
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call):
                if any((target.path or "").partition(".")[2] == attr for target in statement.targets):
                    call = statement.value
                    if call.method == "deque" and (call.keyword("maxlen") is not None or len(call.args) > 1):
                        return True
            for call in ir.own_calls(statement):
                if call.method in ("pop", "popleft") and isinstance(call.func, ir.Attr):
                    if (call.func.base.path or "").partition(".")[2] == attr:
                        return True
    return False


def _is_reset(info: ClassInfo, path: str) -> bool:
    """Whether the class makes it anew somewhere: in its constructor, or in a `reset`."""
    attr = path.partition(".")[2]
    return any(
        (target.path or "").partition(".")[2] == attr
        for part in info.ancestors()
        for method in part.cls.methods.values()
        for statement in ir.statements(method.body)
        for target in targets(statement)
    ) or any(
        isinstance(name := call.argument(0, "name"), ir.Const) and name.value == attr
        for method in info.cls.methods.values()
        for _, call in ir.calls(method.body)
        if call.method in ("add_state", "register_buffer")
    )


# --- lists of the module -------------------------------------------------------------------------------------------


def _module_lists(file: FileAnalysis) -> Iterator[str]:
    """The empty lists that stand at the top of the file."""
    for statement in file.module.body.body:
        if (
            isinstance(statement, ir.Assign)
            and isinstance(statement.value, ir.Seq)
            and not statement.value.items
        ):
            yield from (target.id for target in targets(statement) if isinstance(target, ir.Name))


def _of_shared(file: FileAnalysis, path: str) -> Iterator[Answer]:
    """How long a list of the module keeps what it is given."""
    for statement in file.module.body.body:
        if isinstance(statement, (ir.For, ir.While)) and path in resets(statement.body):
            yield refuted(Question.OUTLIVES, f"`{path}` is emptied in each round")
    emptying = [
        one for one in file.module.functions if one is not file.module.body and path in resets(one.body)
    ]
    if emptying:
        yield left_open(Question.OUTLIVES, f"`{emptying[0].name}` empties `{path}`; how often is not seen")
    else:
        yield proven(Question.OUTLIVES, f"`{path}` belongs to the module")


def _in_storage(tracing: Tracing, function: ir.Function, shared: frozenset[str]) -> Iterator[Kept]:
    """`EVENTS.append({"value": value})` in a function of the module that is given the value."""
    graphs = tracing.of(function)
    for statement in ir.statements(function.body):
        for holder, value, how in puts(statement):
            if holder.path not in shared or holder.path in tracing.file.evidence[function].assigned:
                continue
            for part in _tensors(value):
                traced = graphs.of(part, statement)
                given = _given(graphs, part)
                if traced.graph is REFUTED or traced.tensor is not PROVEN or not given:
                    continue
                answers = (
                    *about(_by_callers(tracing, function, traced, given), part),
                    *_of_shared(tracing.file, holder.path),
                )
                yield Kept(function, statement, part, holder.path, how, answers, scalar=traced.scalar)
                break
