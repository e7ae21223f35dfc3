"""Backwards behind a method whose object is out of sight: `optimizer.gradient(loss)` of a project's own optimizers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Hold
    from gpulint.analysis.file.program import FileAnalysis


def freed_far_away(file: FileAnalysis, hold: Hold) -> bool:
    """Whether the iteration hands what is held to a method that some class of the project gives a backward through that
    very argument."""
    if file.project is None or not file.main or not hold.rounds.loops or not os.path.isfile(file.filename):
        return False
    names = {leaf.path for leaf in hold.leaves} - {None}
    for _, call in ir.calls(hold.rounds.loops[-1].stmt.body):
        if not isinstance(call.func, ir.Attr) or call.func.path is None:
            continue
        for position, arg in enumerate(call.args):
            if arg.path in names and _runs_backward(file, call.method, position):
                return True
    return False


def _runs_backward(file: FileAnalysis, name: str, position: int) -> bool:
    assert file.project is not None
    for other in file.project.files_defining(file.filename, name, b".backward("):
        for function in other.module.functions:
            if function.name == name and function.cls is not None and position + 1 < len(function.params):
                if function.params[position + 1].name in other.evidence[function].backward:
                    return True
    return False
