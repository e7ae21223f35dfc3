"""What raises whenever it runs: a call that does not fit what it calls, and code that is written for a torch which has no `no_grad` yet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, File, Function
from gpulint.analysis.project.requirements import torch_of
from gpulint.analysis.syntax.nodes import called_on, constant_index, key_of
from gpulint.answers import Answer, Question, left_open, refuted


def raises(evaluator: Evaluator, call: ast.Call, frame: Frame) -> Iterator[Answer]:
    """What speaks against it that a call runs what it calls."""
    if not _fits(evaluator, call, frame):
        yield refuted(Question.REACHED, "it gives less than what it calls needs: it raises", call)


def _fits(evaluator: Evaluator, call: ast.Call, frame: Frame) -> bool:
    """Whether a call gives a function of the project all that it needs: else it raises."""
    target = evaluator.value_of(call.func, frame)
    function, bound = target.ref, target.receiver is not None
    if len(target.origins) > 1 or frame.function.file.path.endswith(".ipynb"):
        return True  # it may be another one, which needs something else
    if target.kind == "module" and isinstance(target.ref, Class):
        function, bound = evaluator.method(target.ref, "forward"), True
        derived = evaluator.program.subclasses(target.ref)
        if evaluator.method(target.ref, "__call__") or any("forward" in one.methods for one in derived):
            return True
    if not isinstance(function, Function) or function.decorators:
        return True
    stars = [*(one for one in call.args if isinstance(one, ast.Starred)), *call.keywords]
    if any(getattr(one, "arg", None) is None for one in stars) or (target.function and function.cls):
        return True
    names = function.node.args
    positional = [one.arg for one in (*names.posonlyargs, *names.args)][1 if bound else 0 :]
    needed = positional[len(call.args) : len(positional) - len(names.defaults)]
    named = {one.arg for one in call.keywords}
    too_many = names.vararg is None and len(call.args) > len(positional)
    return not too_many and all(name in named for name in needed)


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
            value = node.value
            while (on := called_on(value, "cpu", "numpy")) is not None:
                value = on
            of_data = isinstance(value, ast.Attribute) and value.attr == "data"
            if of_data and constant_index(node.slice) == 0 and _is_number(evaluator, value.value, function):
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
