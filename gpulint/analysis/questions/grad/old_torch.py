"""Whether a file is written for a torch before 0.4, where `volatile=True` switched grad off and `no_grad` did not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.project.requirements import newest_torch, told_torch
from gpulint.answers import Answer, Question, left_open

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_FIRST_WITH_NO_GRAD = (0, 4)
_CLAUSE = "`.data[0]` fails from torch 0.5 on, and before 0.4 `volatile=True` switches grad off and there is no `no_grad`"


def predates_no_grad(file: FileAnalysis) -> tuple[Answer, ...]:
    """What leaves it open whether a torch runs the file that has `no_grad`; nothing where it does. `volatile=True` alone is also
    left over in code that was moved on; a number read by `loss.data[0]` is not, because that raises, nor is what the project
    says of its versions, in what it requires or in its README."""
    version = newest_torch(file.project, file.filename) or told_torch(file.project, file.filename)
    if version is not None and version < _FIRST_WITH_NO_GRAD:
        major, minor = version
        clause = f"the project is for torch {major}.{minor}, in which `volatile=True` switches grad off and there is no `no_grad`"
        return (left_open(Question.REACHED, clause),)
    if not any("Variable" in evidence.called for evidence in file.evidence.values()):
        return ()
    for function in file.module.functions:
        evidence = file.evidence[function]
        if "data" in evidence.words and any(
            _reads_number(part, evidence.backward)
            for statement in ir.statements(function.body)
            for part in ir.own_parts(statement)
        ):
            return (left_open(Question.REACHED, _CLAUSE),)
    return ()


def _reads_number(part: ir.Expr, backward: set[str]) -> bool:
    """`loss.data[0]` of what a backward is called on, or what is called a loss."""
    return (
        isinstance(part, ir.Sub)
        and isinstance(part.base, ir.Attr)
        and part.base.attr == "data"
        and isinstance(part.index, ir.Const)
        and part.index.value == 0
        and (part.base.base.path in backward or "loss" in (part.base.base.path or "").lower())
    )
