"""Does a network of the project differentiate within its own forward? Under no_grad that raises: normals of a distance
field, forces, gradients with respect to the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.gradmode import decorator_name
from gpulint.analysis.file.lookup import qualified
from gpulint.analysis.torch.backward import GRADIENTS
from gpulint.analysis.values.values import CRITERION

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.program import FileAnalysis

_ON = frozenset({"enable_grad", "set_grad_enabled"})


def differentiating_networks(file: FileAnalysis) -> tuple[ClassInfo, ...]:
    """The classes of modules, of this file or of the project's, that take gradients in their forward or in what it calls by
    name, one of each file. Losses, which are given what they differentiate, are no networks."""
    others = (
        [
            *file.project.files_defining(file.filename, "forward", b"autograd.grad("),
            *file.project.files_defining(file.filename, "forward", b".backward("),
        ]
        if file.project is not None
        else []
    )
    found = {id(one): one for home in (file, *others) if (one := _in_file(home)) is not None}
    return tuple(found.values())


def may_be(network: ClassInfo, function: ir.Function, call: ir.Call) -> bool:
    """Whether what a call runs may be an object of the class: of another object's method, it has one of that name."""
    func = call.func
    if not isinstance(func, ir.Attr) or (function.params and func.base.path == function.params[0].name):
        return True
    return func.attr == "forward" or network.method(func.attr) is not None or func.attr in network.attrs


def _in_file(file: FileAnalysis) -> ClassInfo | None:
    owners = {
        method: info
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
    return None


def _takes_gradients(file: FileAnalysis, method: ir.Function) -> bool:
    return not _switches_grad_on(file, method) and any(
        (call.method == "grad" and qualified(file, method, call.func.path) == GRADIENTS)
        or (call.method == "backward" and isinstance(call.func, ir.Attr) and method.name == "forward")
        for _, call in ir.calls(method.body)
    )


def _switches_grad_on(file: FileAnalysis, method: ir.Function) -> bool:
    """Whether a method is ready for callers without grad: it, or a method of its object that it calls, switches grad on."""
    beside = method.cls.methods if method.cls is not None else {}
    called = (beside[name] for name in file.evidence[method].called if name in beside)
    return any(
        _ON & file.evidence[one].words or any(decorator_name(item)[1] in _ON for item in one.decorators)
        for one in (method, *called)
    )
