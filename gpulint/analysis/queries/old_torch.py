"""Code that is written for a torch which has no `no_grad` yet."""

from __future__ import annotations

import ast
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.project.file import File
from gpulint.analysis.project.requirements import newest_torch, told_torch
from gpulint.analysis.syntax.nodes import constant_index
from gpulint.answers import Answer, Question, left_open

_FIRST_WITH_NO_GRAD: Final = (0, 4)
_NO_GUARD: Final = "`volatile=True` switches grad off and there is no `no_grad`"


def old_torch(evaluator: Evaluator, file: File) -> Answer | None:
    """What leaves it open whether a torch runs the file that has `no_grad`: what the project says of its versions, in what it requires
    or in its README, or a number that is read by `loss.data[0]`, which raises in any torch that has it. None where nothing does."""
    project = evaluator.program.sources
    version = newest_torch(project, file.path) or told_torch(project, file.path)
    if version is not None and version < _FIRST_WITH_NO_GRAD:
        clause = f"the project is for torch {version[0]}.{version[1]}, in which {_NO_GUARD}"
        return left_open(Question.REACHED, clause)
    read = _read_as_before(evaluator, file)
    if read is None:
        return None
    clause = f"`.data[0]` fails from torch 0.5 on, and before torch 0.4 {_NO_GUARD}"
    return left_open(Question.REACHED, clause, read)


def _read_as_before(evaluator: Evaluator, file: File) -> Any:
    for function in (file.body, *file.functions):
        if "data" not in function.words:
            continue
        for node in ast.walk(function.node):
            if (
                isinstance(node, ast.Subscript)
                and constant_index(node.slice) == 0
                and isinstance(node.value, ast.Attribute)
                and node.value.attr == "data"
                and node in function.flow.parents
                and evaluator.value_of(node.value.value, evaluator.root(function)).size == "scalar"
            ):
                return node
    return None
