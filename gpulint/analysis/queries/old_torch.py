"""Code that is written for a torch which has no `no_grad` yet."""

from __future__ import annotations

import ast
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.project.file import File
from gpulint.analysis.syntax.nodes import constant_index

WHY_OLD: Final = "`.data[0]` fails from torch 0.5 on, and before torch 0.4 `volatile=True` switches grad off and there is no `no_grad`"


def old_torch(evaluator: Evaluator, file: File) -> Any:
    """A number that is read by `loss.data[0]`, which raises in any torch that has `no_grad`; None where none is."""
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
