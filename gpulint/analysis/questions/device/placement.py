"""Where a model lives: whether the program itself puts it on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import qualified, template
from gpulint.analysis.questions.size.defaults import setting

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def is_gpu(file: FileAnalysis, function: ir.Function, device: ir.Expr | None, depth: int = 4) -> bool | None:
    """Whether a device can be a GPU: `"cuda"` in any branch of what it is bound to. None where nothing is known of it."""
    if device is None or not depth:
        return None
    text = template(device)
    if text is not None:
        return text.startswith("cuda") or (None if text.startswith("{}") else False)
    if isinstance(device, ir.Const):
        return isinstance(device.value, int) and not isinstance(device.value, bool)
    if isinstance(device, ir.Op) and device.op in ("if", "or"):
        branches = device.operands[1:] if device.op == "if" else device.operands
        return _any(is_gpu(file, function, branch, depth - 1) for branch in branches)
    if isinstance(device, ir.Call):
        if qualified(file, function, device.func.path) == "torch.device" and device.args:
            return is_gpu(file, function, device.args[0], depth - 1)
        return None
    if device.path is None:
        return None
    if (qualified(file, function, device.path) or "").startswith("torch."):
        return False  # a type of numbers
    found = list(_values(file, function, device))
    if not found and isinstance(device, ir.Attr):
        return _is_gpu_setting(file, device.path, device.attr, depth - 1)
    return _any(is_gpu(file, scope, value, depth - 1) for scope, value in found)


def _is_gpu_setting(file: FileAnalysis, path: str, name: str, depth: int) -> bool | None:
    """Whether a setting is made a GPU, `args.device = torch.device("cuda")`, or is one unless something else is asked for:
    `device: str = "cuda"` of a class of the file, or the default of a command line. Who has the CPU for a default, or falls
    back on it, may still be given a GPU."""
    for other, evidence in file.evidence.items():
        if path in evidence.stored and any(
            is_gpu(file, other, value, depth) for value in _bound(other, path)
        ):
            return True
    values = [
        value.value
        for cls in file.module.classes.values()
        for value in _bound_in(cls.body, name)
        if isinstance(value, ir.Const)
    ]
    return True if any(str(value).startswith("cuda") for value in (*values, setting(file, name))) else None


def _any(answers: Iterator[bool | None]) -> bool | None:
    """True where one answer is, False where all are, None else."""
    found = list(answers)
    if any(found):
        return True
    return False if found and all(answer is False for answer in found) else None


def _values(
    file: FileAnalysis, function: ir.Function, place: ir.Expr
) -> Iterator[tuple[ir.Function, ir.Expr | None]]:
    """What a name or an attribute of the object is bound to, with the function that does it."""
    path = place.path or ""
    head, _, rest = path.partition(".")
    if rest:
        for method in _methods(file, function, head):
            own = method.params[0].name if method.params else ""
            yield from ((method, value) for value in _bound(method, f"{own}.{rest}"))
        return
    for scope in function.scopes():
        if path in file.evidence[scope].assigned:
            yield from ((scope, value) for value in _bound(scope, path))
            return
        for param in scope.params:
            if param.name == path:
                yield scope, param.default
                return


def _bound(function: ir.Function, path: str) -> Iterator[ir.Expr]:
    """The values that a function binds to a place; pairs are taken apart."""
    return _bound_in(function.body, path)


def _bound_in(body: list[ir.Stmt], path: str) -> Iterator[ir.Expr]:
    for statement in ir.statements(body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in statement.targets:
                if target.path == path:
                    yield statement.value
                elif isinstance(target, ir.Seq) and isinstance(statement.value, ir.Seq):
                    for part, value in zip(target.items, statement.value.items, strict=False):
                        if part.path == path:
                            yield value


def _methods(file: FileAnalysis, function: ir.Function, head: str) -> list[ir.Function]:
    """The methods that share the object which `head` names in this function."""
    method = function.method
    if method is None or not method.params or method.params[0].name != head:
        return []
    info = file.class_of(method)
    if info is None:
        return []
    return [method for part in info.ancestors() if part.home is file for method in part.cls.methods.values()]


def calls_of(file: FileAnalysis, function: ir.Function) -> Iterator[tuple[ir.Function, ir.Stmt, ir.Call]]:
    """The calls of a function by its name in this file, or by another name that it is given: `load = load_net`."""
    for name in dict.fromkeys((function.name, *file.call_sites.other_names.get(function.name, ()))):
        for site in file.calls_named(name):
            if isinstance(site.call.func, ir.Name):
                yield site.caller, site.statement, site.call
