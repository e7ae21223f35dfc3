"""Results of steps that stand in other files and are called as methods: they go backward there, and are put by here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.consumed import is_collection, puts
from gpulint.rules.detect.kept.graphs import Graphs, Tracing
from gpulint.rules.detect.kept.record import How, Kept
from gpulint.rules.detect.kept.returned import attached_results
from gpulint.rules.detect.kept.traced import REFUTED

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets
from gpulint.analysis.code.reading import innermost
from gpulint.analysis.file.lookup import called
from gpulint.analysis.file.reaching import fits
from gpulint.analysis.questions.outlives.periods import MANY, rounds_between_resets
from gpulint.analysis.questions.reached.dispatch import runs
from gpulint.analysis.torch.keeping import STEPS
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def unseen_steps(file: FileAnalysis) -> list[Kept]:
    """What loops add up of the results of methods like `learner.train(batch)`."""
    if file.project is None:
        return []
    tracing = Tracing(file)
    found: list[Kept] = []
    for function in file.module.functions:
        evidence = file.evidence[function]
        if evidence.has_loop and any(STEPS.match(name) for name in evidence.called):
            found += _in_function(tracing, function)
    return found


def _in_function(tracing: Tracing, function: ir.Function) -> Iterator[Kept]:
    graphs = tracing.of(function)
    for loop in ir.statements(function.body):
        if not isinstance(loop, (ir.For, ir.While)):
            continue
        for statement in loop.body:
            for holder, value, how in puts(statement):
                step = _step_behind(graphs, value, statement)
                if step is None or holder.path is None or graphs.of(value, statement).graph is REFUTED:
                    continue
                if how is How.LISTED and not is_collection(graphs, holder.path):
                    continue
                call, position = step
                answers = tuple(_answers(tracing, graphs, loop, statement, call, position, holder.path))
                if answers:
                    at = value if how is How.LISTED else statement
                    yield Kept(function, at, value, holder.path, how, answers, freed=True)


def _step_behind(graphs: Graphs, value: ir.Expr, statement: ir.Stmt) -> tuple[ir.Call, int | None] | None:
    """The call of a step that a value comes from, alone or divided, and its place among the step's results."""
    while isinstance(value, ir.Op) and value.op in ("/", "*"):
        value = value.operands[0]
    if isinstance(value, ir.Call) and _is_step(graphs, value):
        return value, None
    name = innermost(value)
    if name is not value or name.path is None:
        return None
    definitions, outside = graphs.definitions.reaching(name.path, statement)
    if outside or len(definitions) != 1 or not isinstance(definitions[0].value, ir.Call):
        return None
    definition, call = definitions[0], definitions[0].value
    if not _is_step(graphs, call):
        return None
    if not definition.part:
        return call, None
    target = definition.stmt.targets[0] if isinstance(definition.stmt, ir.Assign) else None
    items = target.items if isinstance(target, ir.Seq) else ()
    return next(((call, place) for place, item in enumerate(items) if item.path == name.path), None)


def _is_step(graphs: Graphs, call: ir.Call) -> bool:
    """Whether it is a method, of something that is not seen, whose name is that of a step."""
    own = isinstance(call.func, ir.Attr) and STEPS.match(call.method) is not None
    return own and bool(call.args or call.keywords) and called(graphs.file, graphs.function, call) is None


def _answers(
    tracing: Tracing,
    graphs: Graphs,
    loop: ir.For | ir.While,
    statement: ir.Stmt,
    call: ir.Call,
    position: int | None,
    path: str,
) -> Iterator[Answer]:
    project = tracing.file.project
    files = project.files_defining(tracing.file.filename, call.method, b"") if project is not None else []
    steps = [
        function
        for other in files
        for function in other.module.functions
        if function.name == call.method and function.cls is not None and fits(function, call)
    ]
    giving = [function for function in steps if position in attached_results(tracing.of(function))]
    if not giving:
        return
    if graphs.grad_at(statement) is Grad.DISABLED:
        yield refuted(Question.GRAD, "grad is off there")
    shown = giving[0].qualname
    meant = _is_made_of(graphs, call, statement, giving[0]) or _is_called(graphs, call, giving[0])
    if len(giving) == len(steps) or meant:
        yield proven(Question.GRAPH, f"`{shown}` returns it with its graph, after the backward through it")
    else:
        yield left_open(
            Question.GRAPH, f"some of the methods of this name return it with its graph, like `{shown}`"
        )
    if meant:
        yield proven(Question.REACHED, f"the call runs `{shown}`, where the object is of its class")
    else:
        told = f"that `{call.func.path or call.method}` is `{shown}` is told by its name"
        yield left_open(Question.REACHED, told)
    rounds = rounds_between_resets(graphs.file, graphs.function, loop, path)
    if rounds is not None and rounds >= MANY:
        yield proven(Question.OUTLIVES, f"`{path}` is started anew only after {rounds} rounds")
    elif path in resets(loop.body):
        yield left_open(Question.OUTLIVES, f"`{path}` is started anew now and then")
    else:
        yield proven(Question.OUTLIVES, f"`{path}` grows with every round")


def _is_called(graphs: Graphs, call: ir.Call, step: ir.Function) -> bool:
    """Whether the call can only mean methods of its family."""
    made_by = (s for s, one in ir.calls(graphs.function.body) if one is call)
    return any(runs(graphs.function, stmt, call, step) for stmt in made_by)


def _is_made_of(graphs: Graphs, call: ir.Call, statement: ir.Stmt, step: ir.Function) -> bool:
    """`learner = Learner(…)` before `learner.train(batch)`."""
    owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
    definitions, outside = graphs.definitions.reaching(owner or "", statement)
    made = definitions[0].value if len(definitions) == 1 and not outside else None
    return isinstance(made, ir.Call) and step.cls is not None and made.method == step.cls.name
