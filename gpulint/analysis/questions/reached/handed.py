"""Calls that hand a network of the project what its forward cannot take: they raise, and save nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.reaching import fits
from gpulint.answers import Answer, Question, left_open, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis


def cannot_take(file: FileAnalysis, forward: Forward) -> Answer | None:
    """What says that a forward raises: it is given fewer arguments than it needs, or a display of another length than it takes
    apart. None where nothing does, or another class may be meant."""
    network = forward.module.network
    if not isinstance(network, ClassInfo) or file.project is None or file.project.derived(network.cls.name):
        return None
    method, path = network.method("forward"), (forward.call.func.path or ".").removesuffix(".forward")
    own = f"{forward.function.params[0].name}." if forward.function.cls and forward.function.params else ""
    if method is None or method.decorators or "." in path.removeprefix(own):
        return None  # of what a network has, or does by another method, the class is not the network's
    name = f"{network.cls.name}.forward"
    if not fits(method, forward.call):
        return refuted(Question.REACHED, f"`{name}` takes other arguments than it is given, and raises")
    for param, given in zip(method.params[1:], forward.call.args, strict=False):
        if isinstance(given, ir.Seq) and not any(isinstance(item, ir.Starred) for item in given.items):
            for statement in ir.statements(method.body):
                if _takes_apart(statement, param.name) not in (None, len(given.items)):
                    clause = f"`{name}` takes another number of things apart than it is given"
                    always = statement in method.body
                    return (refuted if always else left_open)(Question.REACHED, clause)
    return None


def _takes_apart(statement: ir.Stmt, name: str) -> int | None:
    """How many things `a, b = given` makes of it; None for any other statement."""
    if not isinstance(statement, ir.Assign) or statement.value is None or statement.value.path != name:
        return None
    for target in statement.targets:
        if isinstance(target, ir.Seq) and not any(
            isinstance(i, (ir.Starred, ir.Wrapper)) for i in target.items
        ):
            return len(target.items)
    return None
