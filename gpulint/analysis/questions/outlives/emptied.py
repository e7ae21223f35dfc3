"""Does what is kept outlive a call, where other methods of the object empty it, or the function makes numbers of it all?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.answers import Answer, Question, left_open, refuted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.program import FileAnalysis


def emptied(file: FileAnalysis, info: ClassInfo, path: str, writer: ir.Function) -> Answer | None:
    """What other methods of the class say to it that an attribute, `self.cache`, is there for later calls: refuted where a
    forward empties it, open where a method does of which it is not seen how often it runs. None where none does."""
    methods = [
        method
        for method in info.cls.methods.values()
        if method is not writer and method.name != "__init__" and path in resets(method.body)
    ]
    for method in methods:
        if method.name == "forward" or any(_is_of_a_forward(caller) for caller in _callers(file, method)):
            return refuted(
                Question.OUTLIVES,
                f"`{method.name}` empties `{path}` in the course of a forward",
                method.body[0],
            )
    if methods:
        why = f"`{methods[0].name}` empties `{path}`; how often is not seen"
        return left_open(Question.OUTLIVES, why, methods[0].body[0])
    return None


def _is_of_a_forward(caller: ir.Function) -> bool:
    return caller.name in ("forward", "__call__") and caller.cls is not None


def _callers(file: FileAnalysis, method: ir.Function) -> Iterator[ir.Function]:
    """Who calls a method of this name, in this file and in those of the project that may mean it."""
    for function in file.module.functions:
        if function is not method and method.name in file.evidence[function].called:
            yield function
    found = file.project.files_calling(file.filename, method) if file.project is not None else None
    for other in found or ():
        yield from (f for f in other.module.functions if method.name in other.evidence[f].called)


def made_numbers(function: ir.Function, path: str) -> ir.Stmt | None:
    """The loop that cuts all that a dict of the function has: `for key, value in d.items(): d[key] = value.item()`."""
    for statement in function.body:
        if not isinstance(statement, ir.For):
            continue
        iterable = statement.iterable
        if isinstance(iterable, ir.Call) and iterable.method in ("items", "keys"):
            iterable = iterable.func.base if isinstance(iterable.func, ir.Attr) else iterable
        target = statement.target
        key = (target.items[0] if isinstance(target, ir.Seq) else target).path
        if iterable.path == path and any(_cuts_entry(inner, path, key) for inner in statement.body):
            return statement
    return None


def _cuts_entry(statement: ir.Stmt, path: str, key: str | None) -> bool:
    value = statement.value if isinstance(statement, ir.Assign) else None
    cut = isinstance(value, ir.Call) and (value.method in NO_GRAPH or value.func.path == "float")
    return (
        cut
        and isinstance(statement, ir.Assign)
        and any(
            isinstance(target, ir.Sub) and target.base.path == path and target.index.path == key is not None
            for target in statement.targets
        )
    )
