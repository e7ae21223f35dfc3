"""Results that a function returns and of which all its callers read no more than numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
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
