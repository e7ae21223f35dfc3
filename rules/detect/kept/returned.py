"""Steps that give their losses away with their graphs: after their own backward, or to a framework that collects them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.callers import (
    Use,
    call_sites,
    is_handed_on,
    is_told_there,
    means,
    uses_of,
    where,
)
from gpulint.rules.detect.kept.graphs import Graphs, Tracing
from gpulint.rules.detect.kept.keepers import keeper
from gpulint.rules.detect.kept.record import How, Kept, about
from gpulint.rules.detect.kept.statistics import is_cut
from gpulint.rules.detect.kept.traced import OPEN, PROVEN, REFUTED, Traced

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import is_abstract
from gpulint.analysis.file.lookup import qualified
from gpulint.analysis.project.requirements import oldest_lightning
from gpulint.analysis.torch.frameworks import SINKS
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# The hooks that are handed what the steps of an epoch have returned, by the step.
_COLLECTING = {
    "training_step": ("training_epoch_end",),
    "validation_step": ("validation_epoch_end", "validation_end"),
    "test_step": ("test_epoch_end", "test_end"),
}


def returned(file: FileAnalysis) -> list[Kept]:
    """What steps return with a graph that nobody needs any more."""
    tracing = Tracing(file)
    found: list[Kept] = []
    for function in file.module.functions:
        if function is file.module.body or function.is_generator:
            continue
        if function.name in _COLLECTING and function.cls is not None and function.cls.bases:
            found += _to_framework(tracing.of(function))
        elif _runs_own_backward(file, function):
            found += _after_backward(tracing.of(function))
    return found


def _returns(function: ir.Function) -> Iterator[ir.Return]:
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Return) and statement.value is not None:
            yield statement


# --- to a framework ------------------------------------------------------------------------------------------------


def _to_framework(graphs: Graphs) -> Iterator[Kept]:
    function = graphs.function
    info = graphs.file.class_of(function)
    if info is None:
        return
    collector = next((name for name in _COLLECTING[function.name] if info.method(name) is not None), "")
    training = function.name == "training_step"
    for statement in _returns(function):
        parts = [
            (part, traced)
            for part in _given_back(graphs, statement, training)
            if not (traced := graphs.of(part, statement)).cut and not is_cut(part)
            if not training or traced.graph is not REFUTED
        ]
        if not parts or (training and not collector):
            continue
        if not training and not _switches_on(graphs):
            continue
        part, traced = parts[0]
        yield Kept(
            function,
            part,
            part,
            f"what `{function.name}` returns",
            How.RETURNED,
            tuple(_framework_answers(graphs, statement, part, traced, collector)),
            freed=training,
            scalar=traced.scalar,
            others=tuple(other for other, _ in parts[1:]),
        )


def _given_back(graphs: Graphs, statement: ir.Return, training: bool) -> Iterator[ir.Expr]:
    """What a step returns besides the loss that the framework trains by; of a step that only looks, all."""
    value = statement.value
    if isinstance(value, ir.Name):
        definitions, _ = graphs.definitions.reaching(value.id, statement)
        displays = [one.value for one in definitions if isinstance(one.value, ir.DictDisplay)]
        value = displays[0] if len(displays) == 1 and len(definitions) == 1 else value
    if isinstance(value, ir.DictDisplay):
        for key, entry in value.pairs:
            named = isinstance(key, ir.Const) and key.value in ("loss", "hiddens")
            if not (training and named):
                yield entry
    elif value is not None and not training:
        yield value


def _switches_on(graphs: Graphs) -> bool:
    """Whether a step that only looks switches grad on by itself, or by a method of its own that it calls."""
    file, function = graphs.file, graphs.function
    words = set(file.evidence[function].words)
    info = file.class_of(function)
    for name in file.evidence[function].called:
        method = info.method(name) if info is not None else None
        if method is not None:
            words |= file.evidence[method].words if method.home is file else set()
    if words & {"enable_grad", "set_grad_enabled"}:
        return True
    project = file.project
    return project is not None and any(
        project.files_defining(file.filename, name, b"enable_grad")
        for name in sorted(_left_to_subclasses(graphs))
    )


def _left_to_subclasses(graphs: Graphs) -> frozenset[str]:
    """The methods that a method calls of its own object and that only subclasses have: abstract here, or named nowhere else."""
    info = graphs.file.class_of(graphs.function)
    if info is None or not graphs.function.params:
        return frozenset()
    own = graphs.function.params[0].name
    called = {
        call.method for _, call in ir.calls(graphs.function.body) if call.func.path == f"{own}.{call.method}"
    }
    known = {name: info.method(name) for name in called - SINKS}
    return frozenset(name for name, method in known.items() if method is None or is_abstract(method))


def _framework_answers(
    graphs: Graphs, statement: ir.Stmt, part: ir.Expr, traced: Traced, collector: str
) -> Iterator[Answer]:
    function = graphs.function
    if function.name == "training_step":
        yield from about(traced, part)
    elif traced.graph is PROVEN or _made_under_enabled(graphs, part, statement):
        yield proven(Question.GRAD, "grad is switched on where it is made", part)
    else:
        yield left_open(Question.GRAPH, "whether it is made where grad is switched on is not shown")
    if collector:
        yield proven(Question.OUTLIVES, f"`{collector}` is given what every step of the epoch has returned")
        if function.name == "training_step":
            yield _kept_as_it_is(graphs.file)
    else:
        yield left_open(Question.OUTLIVES, "not every version of the framework collects what steps return")


def _kept_as_it_is(file: FileAnalysis) -> Answer:
    """Lightning detached what steps return beside the loss, and said that it would not from 1.6 on."""
    oldest = oldest_lightning(file.project, file.filename)
    if oldest is not None and oldest >= (1, 6):
        wanted = f"{oldest[0]}.{oldest[1]}"
        return proven(
            Question.GRAPH, f"the project asks for Lightning {wanted} or later, which detaches nothing of it"
        )
    return left_open(Question.GRAPH, "some versions of the framework detach what they collect")


def _made_under_enabled(graphs: Graphs, part: ir.Expr, statement: ir.Stmt) -> bool:
    definitions = graphs.definitions.reaching(part.path, statement)[0] if part.path is not None else []
    return any(_is_under_enabled(graphs, definition.stmt) for definition in definitions)


def _is_under_enabled(graphs: Graphs, stmt: ir.Stmt) -> bool:
    return any(
        isinstance(owner, ir.With)
        and any(isinstance(expr, ir.Call) and expr.method == "enable_grad" for expr, _ in owner.items)
        for owner in graphs.definitions.owners(stmt)
    )


# --- after the function's own backward -----------------------------------------------------------------------------


def _runs_own_backward(file: FileAnalysis, function: ir.Function) -> bool:
    evidence = file.evidence[function]
    info = file.class_of(function) if function.cls is not None else None
    if (
        info is not None
        and info.backward
        and any(
            (method := info.method(name)) is not None and method.home.evidence[method].backward
            for name in evidence.called
        )
    ):
        return function.name not in ("forward", "closure", "__init__", "backward")
    if function.name in ("forward", "closure", "__init__", "backward") or function.name == "<lambda>":
        return False
    if "backward" not in evidence.called and not any("backward" in name for name in evidence.called):
        return "grad" in evidence.called and bool(_differentiated(file, function))
    return bool(evidence.backward)


def _differentiated(file: FileAnalysis, function: ir.Function) -> frozenset[str]:
    """What `autograd.grad` is asked to differentiate, once and for all: no graph of the gradient is made."""
    found: set[str] = set()
    for _, call in ir.calls(function.body):
        if call.method == "grad" and qualified(file, function, call.func.path) == "torch.autograd.grad":
            again = call.keyword("create_graph") or call.keyword("retain_graph")
            value = call.argument(0, "outputs")
            if (again is None or (isinstance(again, ir.Const) and not again.value)) and value is not None:
                found |= {part.path for part in ir.walk(value) if isinstance(part, ir.Name) and part.path}
    return frozenset(found)


def _after_backward(graphs: Graphs) -> Iterator[Kept]:
    function = graphs.function
    if _is_closure(graphs.file, function) or _goes_on(graphs):
        return
    if is_handed_on(graphs.file, function):
        return
    if any(is_cut(part) for statement in _returns(function) for _, part in _parts(graphs, statement)):
        return  # the author gives numbers; what is left beside them is told with the statistics, or asked for by a flag
    differentiated = _differentiated(graphs.file, function)
    for statement in _returns(function):
        if not _follows_backward(graphs, statement):
            continue
        parts = list(_attached(graphs, statement, differentiated))
        if not parts:
            continue
        position, part, traced = parts[0]
        answers = (*about(traced, part), *_may_go_on(graphs), *_caller_answers(graphs, position))
        yield Kept(
            function,
            part if isinstance(part, (ir.Name, ir.Attr, ir.Sub)) else statement,
            part,
            function.name,
            How.RETURNED,
            answers,
            freed=True,
            scalar=traced.scalar,
            others=tuple(other for _, other, _ in parts[1:]),
        )
        return  # one report a function


def _attached(
    graphs: Graphs, statement: ir.Return, differentiated: frozenset[str]
) -> Iterator[tuple[int | None, ir.Expr, Traced]]:
    """The parts of what is returned that a backward of the function has gone through."""
    for position, part in _parts(graphs, statement):
        if _is_gathered(graphs, statement, part):
            continue
        traced = graphs.of(part, statement)
        if part.path in differentiated and traced.graph is not REFUTED:
            traced = Traced(
                PROVEN, PROVEN, f"its gradient has been taken, and `{part.path}` keeps its graph", freed=True
            )
        if (
            traced.graph is PROVEN
            and traced.freed
            and _went_backward_before(graphs, statement, part, differentiated)
        ) or (isinstance(part, ir.Attr) and part.path in graphs.backwarded and traced.graph is OPEN):
            yield position, part, traced


def attached_results(graphs: Graphs) -> frozenset[int | None]:
    """The places of its results that a step gives away with a graph which its own backward has gone through."""
    function, file = graphs.function, graphs.file
    info = file.class_of(function)
    if info is not None and not file.main:
        file.prepare(info)  # its bases in other files
    if not _runs_own_backward(file, function) or _goes_on(graphs):
        return frozenset()
    differentiated = _differentiated(file, function)
    found: set[int | None] = set()
    for statement in _returns(function):
        if _follows_backward(graphs, statement):
            found |= {position for position, _, _ in _attached(graphs, statement, differentiated)}
    return frozenset(found)


def _went_backward_before(
    graphs: Graphs, statement: ir.Stmt, part: ir.Expr, differentiated: frozenset[str]
) -> bool:
    """Whether a name in it is what a backward goes through, and got its value before one."""
    through = graphs.backwarded | graphs.parts | differentiated
    for name in (one for one in ir.walk(part) if one.path in through):
        definitions, _ = graphs.definitions.reaching(name.path or "", statement)
        made = [definition.stmt for definition in definitions if definition.whole]
        if not made or any(_has_backward_between(graphs, one, statement) for one in made):
            return True
    return False


def _has_backward_between(graphs: Graphs, made: ir.Stmt, end: ir.Stmt) -> bool:
    for later in graphs.definitions.after(made):
        if later is end:
            return False
        if any(
            "backward" in call.method or call.method == "grad" or self_backward(graphs, call)
            for call in ir.own_calls(later)
        ):
            return True
    return False


def _is_gathered(graphs: Graphs, statement: ir.Stmt, part: ir.Expr) -> bool:
    """Whether it was added up or collected on the way, or comes out of a loop that trains: it is told where that happens."""
    for name in (one for one in ir.walk(part) if one.path is not None):
        definitions, _ = graphs.definitions.reaching(name.path or "", statement)
        for definition in definitions:
            grows = not definition.whole and name.path not in graphs.backwarded
            if grows or isinstance(definition.value, ir.Seq):
                return True
            around = set(map(id, graphs.definitions.owners(statement)))
            for owner in graphs.definitions.owners(definition.stmt):
                is_loop = isinstance(owner, (ir.For, ir.While)) and id(owner) not in around
                if is_loop and (definition.whole or _has_backward_in(graphs, owner)):
                    return True
    return isinstance(part, ir.Attr) and "." in part.path[5:] if part.path else False


def _has_backward_in(graphs: Graphs, loop: ir.Stmt) -> bool:
    return any(
        "backward" in call.method or self_backward(graphs, call)
        for block in loop.blocks()
        for _, call in ir.calls(block)
    )


def _parts(graphs: Graphs, statement: ir.Return) -> Iterator[tuple[int | None, ir.Expr]]:
    """The places of a tuple, also of one that has got a name first; the entries of a dict; or the one value."""
    value = statement.value
    if isinstance(value, ir.Name):
        definitions, _ = graphs.definitions.reaching(value.id, statement)
        sequences = [one.value for one in definitions if isinstance(one.value, (ir.Seq, ir.DictDisplay))]
        if sequences and not any(name in graphs.backwarded for name in (value.id,)):
            value = sequences[-1]
    if isinstance(value, ir.Seq):
        for position, item in enumerate(value.items):
            inner = item.items if isinstance(item, ir.Seq) else (item,)
            yield from ((position, one) for one in inner)
    elif isinstance(value, ir.DictDisplay):
        if not any(is_cut(entry) for _, entry in value.pairs):  # else it is told with its statistics
            yield from ((None, entry) for _, entry in value.pairs)
    elif value is not None:
        yield None, value


def _follows_backward(graphs: Graphs, statement: ir.Stmt) -> bool:
    """Whether the return stands after a backward."""
    for earlier in ir.statements(graphs.function.body):
        if earlier is statement:
            return False
        if any("backward" in call.method or call.method == "grad" for call in ir.own_calls(earlier)):
            return True
        if any(self_backward(graphs, call) for call in ir.own_calls(earlier)):
            return True
    return False


def self_backward(graphs: Graphs, call: ir.Call) -> bool:
    """`self.opt_step(…)`, a method of the same object that goes backward."""
    info = graphs.file.class_of(graphs.function) if graphs.function.cls is not None else None
    own = (
        isinstance(call.func, ir.Attr) and call.func.base.path == graphs.function.params[0].name
        if info
        else False
    )
    method = info.method(call.method) if info is not None and own else None
    return method is not None and bool(method.home.evidence[method].backward)


def _is_closure(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether the function is handed to an optimizer, which wants the loss."""
    if function.parent is None or function.parent is file.module.body:
        return False
    return any(
        call.method in ("step", "minimize", "optimizer_step")
        and any(arg.path == function.name for arg in call.args)
        for _, call in ir.calls(function.parent.body)
    )


def _goes_on(graphs: Graphs) -> bool:
    """Whether what is returned may go backward once more: the graph is retained, or made of gradients."""
    return (
        any(isinstance(flag, ir.Const) and bool(flag.value) for flag in _kept_by_flags(graphs))
        or graphs.grad_at(graphs.function.body[0]) is Grad.DISABLED
    )


def _kept_by_flags(graphs: Graphs) -> Iterator[ir.Expr]:
    """What the backwards of a function are told about keeping their graphs."""
    for _, call in ir.calls(graphs.function.body):
        for name in ("retain_graph", "create_graph"):
            if (flag := call.keyword(name)) is not None:
                yield flag


def _may_go_on(graphs: Graphs) -> Iterator[Answer]:
    """`loss.backward(create_graph=second_order)`: a caller that asks for it goes backward through what it is given."""
    flag = next((one for one in _kept_by_flags(graphs) if isinstance(one, (ir.Name, ir.Attr))), None)
    if flag is not None and flag.path is not None:
        why = f"`{flag.path}` decides whether the graph is kept for another backward"
        yield left_open(Question.BACKWARD, why, flag)


def _caller_answers(graphs: Graphs, position: int | None) -> Iterator[Answer]:
    function = graphs.function
    sites = call_sites(graphs.file, function)
    uses = [(site, uses_of(site, position)) for site in sites]
    kept = [site for site, use in uses if use is Use.KEPT]
    further = keeper(graphs.file, function, position) if uses and not kept else None
    if kept and is_told_there(graphs.file, function, kept):
        yield refuted(Question.OUTLIVES, "it is told where a caller keeps it")
    elif meant := next((site for site in kept if means(site, function)), None):
        yield proven(Question.OUTLIVES, f"`{meant.function.name}` puts it by", *where(graphs.file, meant))
    elif kept:
        name = kept[0].function.name
        yield left_open(
            Question.OUTLIVES, f"`{name}` keeps what a function of this name returns, which may be another"
        )
    elif further is not None:
        clause = "by way of its callers it is put by for later"
        yield proven(Question.OUTLIVES, clause, *further.as_seen_from(graphs.file))
    elif uses and all(use is Use.READ for _, use in uses):
        yield refuted(Question.OUTLIVES, "each caller that is seen only reads a number of it")
    elif uses:
        name = next(site.function.name for site, use in uses if use is Use.UNSEEN)
        yield left_open(Question.OUTLIVES, f"what `{name}` does with it is not seen to its end")
        yield left_open(Question.READS, "it may be read as a number and dropped")
    else:
        yield left_open(Question.REACHED, f"who calls `{function.name}` is not seen")
        yield left_open(Question.READS, "it may be read as a number and dropped")
