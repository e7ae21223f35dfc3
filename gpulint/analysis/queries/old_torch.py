"""Code that is written for a torch which has no `no_grad` yet: what says so."""

from __future__ import annotations

import ast
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.project.requirements import torch_of
from gpulint.analysis.syntax.nodes import called_on, constant_index, key_of
from gpulint.answers import Answer, Question, left_open

_FIRST_WITH_NO_GRAD: Final = (0, 4)
_NO_GUARD: Final = "`volatile=True` switches grad off and there is no `no_grad`"


def old_torch(evaluator: Evaluator, file: File) -> Answer | None:
    """What leaves it open whether a torch runs the file that has `no_grad`: what the project says of its versions, in what it requires
    or in its README, or a number that is read by `loss.data[0]`, which raises in any torch that has it. None where nothing does."""
    program = evaluator.program
    version = torch_of(program, file)
    if version is not None and version < _FIRST_WITH_NO_GRAD:
        clause = f"the project is for torch {version[0]}.{version[1]}, in which {_NO_GUARD}"
        return left_open(Question.REACHED, clause)
    read = _read_as_before(evaluator, file)
    if read is None or _is_newer(evaluator, file):
        return None
    clause = f"`.data[0]` fails from torch 0.5 on, and before torch 0.4 {_NO_GUARD}"
    return left_open(Question.REACHED, clause, read)


def _read_as_before(evaluator: Evaluator, file: File) -> Any:
    for function in (file.body, *file.functions):
        for node in function.flow.of_kind(ast.Subscript) if "data" in function.words else ():
            of_data = isinstance(node.value, ast.Attribute) and node.value.attr == "data"
            is_read = of_data and constant_index(node.slice) == 0
            if is_read and _is_number(evaluator, node.value.value, function):
                return node
    return None


def _is_newer(evaluator: Evaluator, file: File) -> bool:
    """Whether a file calls what no torch before `no_grad` has: that itself, or `item` of a tensor."""
    items = ((called_on(call), evaluator.root(one)) for one, call in file.calls_named("item"))
    of_tensors = (evaluator.value_of(on, frame).kind == "tensor" for on, frame in items if on)
    return bool(file.calls_named("no_grad")) or any(of_tensors)


def _is_number(evaluator: Evaluator, node: Any, function: Function) -> bool:
    """Whether a tensor has one element: as such it is made, or a backward begins with it that is given no gradient."""
    if evaluator.value_of(node, evaluator.root(function)).size == "scalar":
        return True
    return any(not one.args for one in function.flow.calls_on({key_of(node)}, "backward"))
