"""Whether the network whose weights are copied is on the GPU, as far as what moves something in its file tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import names_cuda
from gpulint.analysis.questions.device.placement import is_returned_on_host

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def certainty_on_gpu(file: FileAnalysis, function: ir.Function, statement: ir.Stmt, source: ir.Call) -> str:
    """Whether the model of the `state_dict()` is on the GPU: "certain" where the file moves something there, "likely"
    where it moves something to a `device`, else ""."""
    assert isinstance(source.func, ir.Attr)
    model = source.func.base.path or ""
    previous: ir.Stmt | None = None
    for other in ir.statements(function.body):
        if other is statement:
            break
        previous = other
    if previous is not None and any(
        _to_host(call) and isinstance(call.func, ir.Attr) and call.func.base.path == model
        for _, call in ir.calls([previous])
    ):
        return ""
    if is_returned_on_host(function, model):
        return ""
    devices = _cuda_devices(file)
    if function.name == "__init__" and not moves_something(file, function):
        if not is_given_to_constructor(function, source):
            return ""  # a constructor that moves nothing has its model where it was made: on the host
        if any(
            _moved_object(call) == model
            for other in file.module.functions
            for _, call in ir.calls(other.body)
        ):
            return ""  # it is moved after that
    moving = [(other, call) for other in file.module.functions for _, call in _moving_calls(file, other)]
    if any(_moves(file, other, call, devices) for other, call in moving):
        return "certain"
    likely = any(call.method == "to" and call.args and _names_device(call.args[0]) for _, call in moving)
    return "likely" if likely else ""


def moves_something(file: FileAnalysis, function: ir.Function) -> bool:
    devices = _cuda_devices(file)
    return any(
        _moves(file, function, call, devices) or (call.method == "to" and call.args)
        for _, call in _moving_calls(file, function)
    )


def _moved_object(call: ir.Call) -> str | None:
    """`self.net` of `self.net.to(device)`."""
    return call.func.base.path if call.method in ("to", "cuda") and isinstance(call.func, ir.Attr) else None


def is_given_to_constructor(function: ir.Function, source: ir.Call) -> bool:
    """Whether the network is a parameter of a constructor, or an attribute that is bound to one there and nothing else."""
    if function.name != "__init__" or not isinstance(source.func, ir.Attr):
        return False
    path = source.func.base.path
    params = {param.name for param in function.params}
    values = [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and any(target.path == path for target in statement.targets)
    ]
    if not values:
        return path in params
    return all(value is not None and value.path in params for value in values)


def _to_host(call: ir.Call) -> bool:
    """`model.cpu()`, `model.to("cpu")`, `model.to(torch.device("cpu"))`."""
    device = call.argument(0, "device") if call.method == "to" else None
    return call.method == "cpu" or (
        device is not None
        and any(isinstance(part, ir.Const) and part.value == "cpu" for part in ir.walk(device))
    )


def is_given(file: FileAnalysis, function: ir.Function, source: ir.Call) -> bool:
    """Whether a class that moves nothing is handed the model, by a program for which it waits: `stopper(loss, model)`."""
    assert isinstance(source.func, ir.Attr)
    given = any(param.name == source.func.base.path for param in function.params)
    return (
        given
        and function.cls is not None
        and not any(evidence.words & {"cpu", "cuda", "device", "to"} for evidence in file.evidence.values())
    )


def _names_device(expr: ir.Expr) -> bool:
    last = expr.attr if isinstance(expr, ir.Attr) else expr.path or ""
    return last in ("device", "_device", "dev", "DEVICE")


def _moving_calls(file: FileAnalysis, function: ir.Function) -> Iterator[tuple[ir.Stmt, ir.Call]]:
    if not {"cuda", "to", "device"}.isdisjoint(file.evidence[function].words):
        yield from ir.calls(function.body)


def _moves(file: FileAnalysis, function: ir.Function, call: ir.Call, devices: frozenset[str]) -> bool:
    """`x.cuda()`, `x.to("cuda")`, and `x.to(device)` where the file sets `device` to a CUDA device."""
    if not isinstance(call.func, ir.Attr) or call.func.path == "torch.cuda":
        return False
    if call.method == "cuda":
        return True
    if call.method != "to" or not call.args:
        return False
    device = call.args[0]
    last = device.attr if isinstance(device, ir.Attr) else device.path
    return last in devices or names_cuda(file, function, device)


def _cuda_devices(file: FileAnalysis) -> frozenset[str]:
    """The last names of variables and attributes that are set to a CUDA device somewhere in the file."""
    found: set[str] = set()
    for function, evidence in file.evidence.items():
        if not any(text.startswith("cuda") for text in evidence.strings):
            continue
        for statement in ir.statements(function.body):
            if not isinstance(statement, ir.Assign) or statement.value is None:
                continue
            if any(
                isinstance(part, ir.Const) and isinstance(part.value, str) and part.value.startswith("cuda")
                for part in ir.walk(statement.value)
            ):
                found |= {
                    target.path.rpartition(".")[2] for target in statement.targets if target.path is not None
                }
    return frozenset(found)
