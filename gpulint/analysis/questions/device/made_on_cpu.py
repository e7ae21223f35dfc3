"""Networks that are asked for on the CPU where they are made, `Model.load(name, device="cpu")`, and what runs beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import innermost
from gpulint.analysis.questions.device.origins import bindings, is_cpu
from gpulint.analysis.torch.methods import GIVES_ITSELF

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward

_Bound = dict[str, list[ir.Expr | None]]


def is_made_on_cpu(forward: Forward) -> bool:
    """Whether the network, or one that is given the same batch as it is, was made for the CPU and is moved nowhere."""
    function = forward.function
    bound = bindings(function)
    made = _made_there(function, bound)
    if not made or forward.module.path in made:
        return bool(made)
    batches = _given(forward.call, bound)
    return bool(batches) and any(
        call.func.path in made and _given(call, bound) & batches
        for loop in forward.loops[-1:]
        for _, call in ir.calls(loop.stmt.body)
    )


def _made_there(function: ir.Function, bound: _Bound) -> set[str]:
    """The names that are bound to nothing but what is made with `device="cpu"`."""
    found = {
        name
        for name, values in bound.items()
        if values and all(isinstance(value, ir.Call) and _asks_for_cpu(value, bound) for value in values)
    }
    if not found:
        return found
    for _, call in ir.calls(function.body):
        if call.method in ("to", "cuda") and isinstance(call.func, ir.Attr) and call.func.base.path in found:
            found.discard(call.func.base.path or "")
    return found


def _asks_for_cpu(call: ir.Call, bound: _Bound) -> bool:
    while (
        call.method in GIVES_ITSELF and isinstance(call.func, ir.Attr) and isinstance(call.func.base, ir.Call)
    ):
        if call.method in ("to", "cuda"):
            return False
        call = call.func.base
    place = call.keyword("device")
    return place is not None and is_cpu(place, bound)


def _given(call: ir.Call, bound: _Bound) -> set[str]:
    """The names of the batches in `model(batch.clean[:, 1:])`: taken as they are, and moved nowhere."""
    found: set[str] = set()
    stack = list(call.args)
    for _ in range(8):
        if not stack:
            break
        arg = stack.pop()
        root = innermost(arg)
        if not isinstance(root, ir.Name) or any(isinstance(part, ir.Call) for part in ir.walk(arg)):
            continue
        values = bound.get(root.id, [])
        if values and None not in values:
            stack += [value for value in values if value is not None]
        else:
            found.add(root.id)
    return found
