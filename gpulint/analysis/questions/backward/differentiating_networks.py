"""Does a network of the project differentiate within its own forward? Under no_grad that raises: normals of a distance
field, forces, gradients with respect to the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import qualified
from gpulint.analysis.torch.backward import GRADIENTS
from gpulint.analysis.values.values import CRITERION

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def differentiating_network(file: FileAnalysis) -> str:
    """The class of a module, of this file or of the project's, that takes gradients in its forward or in what its forward
    calls by name; empty where none is seen. Losses, which are given what they differentiate, are no networks."""
    others = (
        [
            *file.project.files_defining(file.filename, "forward", b"autograd.grad("),
            *file.project.files_defining(file.filename, "forward", b".backward("),
        ]
        if file.project is not None
        else []
    )
    for home in (file, *others):
        found = _in_file(home)
        if found:
            return found
    return ""


def _in_file(file: FileAnalysis) -> str:
    owners = {
        method: info.cls.name
        for info in file.classes.values()
        if info.is_module and not info.module_flags & CRITERION
        for method in info.cls.methods.values()
    }
    queue = [method for method in owners if method.name == "forward"]
    seen = set(queue)
    while queue:
        method = queue.pop()
        if _takes_gradients(file, method):
            return owners[method]
        called = file.evidence[method].called
        further = [other for other in owners if other.name in called and other not in seen]
        seen.update(further)
        queue += further
    return ""


def _takes_gradients(file: FileAnalysis, method: ir.Function) -> bool:
    if {"enable_grad", "set_grad_enabled"} & file.evidence[method].words:
        return False  # it is ready for callers without grad
    return any(
        (call.method == "grad" and qualified(file, method, call.func.path) == GRADIENTS)
        or (call.method == "backward" and isinstance(call.func, ir.Attr) and method.name == "forward")
        for _, call in ir.calls(method.body)
    )
