"""Whether what a call runs in the project may go backward, however the branches on the way there look: under no_grad that
raises, and what it differentiates needs its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file import lookup
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.grad.frozen_networks import classes_bound
from gpulint.analysis.torch.backward import differentiates

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 5
# Functions that use these are ready for callers without grad.
_READY = frozenset({"enable_grad", "set_grad_enabled"})


class BackwardUnderCalls:
    """Asks the functions that the calls of one file run, and those that they call, here and where they are imported from."""

    def __init__(self) -> None:
        self._known: dict[ir.Function, ir.Function | None] = {}

    def of_forward(self, forward: Forward) -> ir.Function | None:
        """The function that may run a backward where this forward is called; None where none is seen."""
        network = forward.module.network
        if isinstance(network, ClassInfo):
            for name in (forward.call.method, "forward"):
                method = network.method(name)
                if method is not None:
                    return self._within(method, _DEPTH)
        return self.of_call(forward.function, forward.call)

    def of_call(self, function: ir.Function, call: ir.Call, depth: int = _DEPTH) -> ir.Function | None:
        """The same of any call; of what an object may be made as, of each."""
        callee = lookup.called_in_project(function, call)
        called = _of_objects(function, call) if callee is None else [callee, *lookup.put_in_its_place(callee)]
        found = (self._within(one, depth) for one in called)
        return next((one for one in found if one is not None), None)

    def _within(self, function: ir.Function, depth: int) -> ir.Function | None:
        if not depth:
            return None
        if function not in self._known:
            self._known[function] = None  # called again within itself: it adds nothing
            self._known[function] = self._first(function, depth)
        return self._known[function]

    def _first(self, function: ir.Function, depth: int) -> ir.Function | None:
        home: FileAnalysis = function.home
        if home.evidence[function].words & _READY:
            return None
        calls = [call for _, call in ir.calls(function.body)]
        for call in calls:
            if _switches_off(call):
                continue
            if differentiates(lookup.qualified(home, function, call.func.path), call.method):
                return function
        found = (self.of_call(function, call, depth - 1) for call in calls)
        return next((one for one in found if one is not None), None)


def _switches_off(call: ir.Call) -> bool:
    """`param.requires_grad_(False)`, which asks for no gradient."""
    mode = call.argument(0, "requires_grad") if call.method == "requires_grad_" else None
    return isinstance(mode, ir.Const) and mode.value is False


def _of_objects(function: ir.Function, call: ir.Call) -> list[ir.Function]:
    """What a call runs of the objects that its name is bound to, `attack = FGSM(net) if fast else PGD(net)`: the method, or for
    an object that is itself called, both of what may be run."""
    owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
    ways = ((call.func.path, ("__call__", "forward")), (owner, (call.method,)))
    methods = [
        made.method(name)
        for path, names in ways
        if path is not None
        for made in classes_bound(function.home, function, path)
        if isinstance(made, ClassInfo)
        for name in names
    ]
    return [method for method in methods if method is not None]
