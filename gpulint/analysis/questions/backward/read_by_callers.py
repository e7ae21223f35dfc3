"""Results that a function returns: of which all its callers read no more than numbers, or that are theirs to go backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs, targets
from gpulint.analysis.code.following import main_blocks
from gpulint.analysis.code.reading import is_region
from gpulint.analysis.torch.roles import EVALUATES, TRAINS
from gpulint.answers import Answer, Question, left_open, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward, Hold
    from gpulint.analysis.file.program import FileAnalysis


def only_read_by_callers(file: FileAnalysis, forward: Forward) -> bool:
    """Whether every call of the function that returns a forward's result stands in this file, was followed, and has its
    result read as numbers: `stats = self.check(x, y); history.add(stats["loss"].item())`."""
    function, site = forward.function, forward.site
    if site is None or function.name.startswith("<") or not forward.result.returned:
        return False
    if forward.result.escaped or forward.result.stored or function.decorators:
        return False
    results = file.results_of_calls.get(site, set())
    followed = {id(result.origin) for result in results}
    if not results or any(
        {result} & file.returned
        or {result} & file.escaped
        or {result} & file.stored
        or {result} & file.freed
        or not {result} & file.read
        for result in results
    ):
        return False
    calls = [
        call
        for other in file.module.functions
        if function.name in file.evidence[other].words
        for _, call in ir.calls(other.body)
        if call.method == function.name
    ]
    return all(id(call.origin) in followed for call in calls) and not _is_seen_elsewhere(file, function)


def _is_seen_elsewhere(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether the function is handed on, here or in another file, or called from there."""
    from gpulint.analysis.questions.grad.guarding import uses_as_value

    if any(
        uses_as_value(root, function)
        for other in file.module.functions
        for statement in ir.statements(other.body)
        for root in statement.expressions()
    ):
        return True
    project = file.project
    if project is None:
        return False
    files = project.files_calling(file.filename, function)
    return files is None or bool(files) or project.uses_as_value(file.filename, function)


def wanted_by_callers(file: FileAnalysis, hold: Hold) -> Answer | None:
    """Whether a sum that a function returns with its graph may be a loss that it builds for its callers. That an extractor
    runs in eval mode says only that the extractor is not trained. None where the function evaluates, by its rounds over
    data, its name or whoever calls it."""
    rounds, function, holder = hold.rounds, hold.function, f"`{hold.place.holder}`"
    inside = [
        forward
        for forward in file.facts[function].forwards
        if forward.site in hold.value.sites and forward.mode.evaluating
        if any(loop in rounds.loops for loop in forward.loops)
    ]
    around = (loop for forward in inside for loop in forward.loops)
    of_data = any((loop.over_data and not loop.over_pairs) or loop.over_items for loop in around)
    if not hold.graph.returned or hold.place.holder_kind != "variable" or of_data or not inside:
        return None
    if not TRAINS.search(function.name) and EVALUATES.search(function.name):
        return None
    if any(only_read_by_callers(file, forward) for forward in inside) and not _is_only_tried_out(
        file, function
    ):
        return None
    if all(_takes_part_of_given(hold, forward) for forward in inside):
        compared = len({ast.unparse(forward.call.origin) for forward in inside}) > 1
        if TRAINS.search(function.name) or compared:
            return refuted(
                Question.BACKWARD, f"{holder} is a loss of what callers give: it is theirs to go backward"
            )
        return left_open(
            Question.BACKWARD, f"{holder} is made of what callers give, who may go backward through it"
        )
    if rounds.over_data or any(loop.counts_all for loop in rounds.loops) or file.facts[function].calls_eval:
        return None
    return left_open(
        Question.BACKWARD, f"{holder} is returned with its graph: a caller may go backward through it"
    )


def _is_only_tried_out(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether nothing calls a function but what stands under `if __name__ == "__main__":`."""
    return file.called_from.get(function, set()) <= {file.module.body} and any(
        call.method == function.name for _, call in ir.calls(main_blocks(file.module))
    )


def _takes_part_of_given(hold: Hold, forward: Forward) -> bool:
    """Whether a network runs on a part of a tensor that its function is given, a slice, a crop, a scale of it, and not on one
    item after another: `x[:, :, z]`, but not `xs[i]`."""
    function = forward.function
    own = {param.name for param in function.params[: int(function.cls is not None)]}
    given = {param.name for param in function.params} - own
    counters = {t.id for loop in hold.rounds.loops for t in targets(loop.stmt) if isinstance(t, ir.Name)}
    parts = [part for arg in forward.call.args for part in _made_of(function, arg)]
    if any(
        isinstance(part, ir.Sub) and not is_region(part.index) and _speaks_of(part.index, counters)
        for part in parts
    ):
        return False
    return any(isinstance(part, ir.Name) and part.id in given for part in parts)


def _made_of(function: ir.Function, expr: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of an expression, and of whatever its names are bound to in the function; but what a call gives several of
    at once, `x, y = draw()`, is a batch."""
    seen: set[str] = set()
    stack = [expr]
    while stack:
        for part in ir.walk(stack.pop()):
            yield part
            if isinstance(part, ir.Name) and part.id not in seen:
                seen.add(part.id)
                stack += [
                    value
                    for statement in ir.statements(function.body)
                    if isinstance(statement, ir.Assign)
                    for target, value in pairs(statement)
                    if target.path == part.id
                    and not (target not in statement.targets and isinstance(value, ir.Call))
                ]


def _speaks_of(expr: ir.Expr, names: set[str]) -> bool:
    return any(isinstance(part, ir.Name) and part.id in names for part in ir.walk(expr))
