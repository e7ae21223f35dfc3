"""What calls give: torch's functions, networks, functions of the file, methods of tensors, and strangers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.traced import (
    NO_GRAPH_MADE,
    NUMBER,
    OPEN,
    PROVEN,
    REFUTED,
    UNKNOWN,
    Traced,
    joined,
    made_without,
    of_value,
)

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import called, qualified
from gpulint.analysis.torch.frameworks import GRAPH_KEEPING, HOST_LIBRARIES
from gpulint.analysis.torch.keeping import CUTS, LOSSLIKE
from gpulint.analysis.torch.methods import GIVES_ITSELF, NO_GRAPH
from gpulint.analysis.torch.names import (
    JOINS,
    KEEPS_GRAPH,
    PAIRS,
    REDUCTIONS,
    TO_DEVICE,
    TO_HOST,
    is_loss_function,
)
from gpulint.analysis.values.values import Grad, Kind, ParamToken, Val

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

# Only tensors have these methods: what they are called on is one.
_OF_TENSORS = frozenset(
    "cpu cuda to view contiguous unsqueeze squeeze permute double half bfloat16 type_as expand backward requires_grad_ "
    "log_softmax softmax sigmoid masked_fill index_select cumsum new_zeros clamp pow sqrt exp norm flatten chunk unbind "
    "transpose logsumexp argmax float detach".split()
)
_BUILT_IN = frozenset("sum max min abs list tuple dict sorted reversed enumerate zip next iter set".split())
_CARRIERS = frozenset("values items get copy pop mean sum to_tuple keys".split())


class Results:
    """The part of a function's values that calls make."""

    file: FileAnalysis
    function: ir.Function
    _forwards: dict[int, Forward]
    _own: str

    if TYPE_CHECKING:

        def of(self, expr: ir.Expr, stmt: ir.Stmt, depth: int = 0) -> Traced: ...

        def _computed(self, found: Traced, stmt: ir.Stmt) -> Traced: ...

        def grad_at(self, stmt: ir.Stmt) -> Grad: ...

    def _call(self, call: ir.Call, stmt: ir.Stmt, depth: int) -> Traced:
        method = call.method
        name = qualified(self.file, self.function, call.func.path) or ""
        if name.startswith("torch") or name in GRAPH_KEEPING:
            return self._of_torch(call, name, stmt, depth)
        if name.partition(".")[0] in HOST_LIBRARIES:
            return replace(NUMBER, cut=True)
        if call.func.path == "map" and len(call.args) == 2:
            numbers = CUTS.search(call.args[0].path or "") is not None
            return replace(NUMBER, cut=True) if numbers else UNKNOWN
        if isinstance(call.func, ir.Name) and method in _BUILT_IN and not name:
            return self._computed(joined(self.of(arg, stmt, depth) for arg in call.args), stmt)
        if id(call) in self._forwards:
            return self._of_forward(self._forwards[id(call)])
        local = called(self.file, self.function, call)
        if local is not None:
            return self._of_local(call, local, stmt, depth)
        if isinstance(call.func, ir.Attr):
            return self._of_method(call, call.func, stmt, depth)
        if CUTS.search(method):
            return replace(NUMBER, cut=True)
        if method[:1].isupper():
            return made_without("it is made of numbers") if method.endswith("Tensor") else UNKNOWN
        return self._of_stranger(call, stmt)

    def _of_torch(self, call: ir.Call, name: str, stmt: ir.Stmt, depth: int) -> Traced:
        last = name.rpartition(".")[2]
        if name in GRAPH_KEEPING and call.args:
            return self.of(call.args[0], stmt, depth)
        if last in TO_HOST:
            return replace(NUMBER, cut=True)
        if last in TO_DEVICE or last.endswith("Tensor"):
            return made_without(f"`{last}` makes no graph")
        if (
            last in JOINS
            or last in KEEPS_GRAPH
            or last in REDUCTIONS
            or last in PAIRS
            or is_loss_function(name)
        ):
            given = [self.of(arg, stmt, depth) for arg in call.args if not isinstance(arg, ir.Const)]
            found = joined(given)
            if given and found.tensor is not REFUTED:
                scalar = is_loss_function(name) or (last in REDUCTIONS and len(call.args) == 1)
                return self._computed(replace(found, tensor=PROVEN, scalar=scalar), stmt)
            return found if given else UNKNOWN
        return UNKNOWN

    def _of_forward(self, forward: Forward) -> Traced:
        path = forward.module.path or "a network"
        if forward.mode.grad is Grad.DISABLED:
            return NO_GRAPH_MADE
        sure = forward.mode.grad is Grad.ENABLED and forward.module.proven and not forward.module.by_role
        why = (
            f"`{path}` makes it with grad enabled"
            if sure
            else f"whether `{path}` makes it with a graph is not certain"
        )
        return Traced(PROVEN, PROVEN if sure else OPEN, why, freed=forward.result.freed)

    def _of_local(self, call: ir.Call, local: ir.Function, stmt: ir.Stmt, depth: int) -> Traced:
        summary = self.file.summaries.get(local)
        if summary is not None and summary.returns is not None and summary.returns.kind is Kind.SYMBOL:
            return self._of_given(summary.returns, call, local, stmt, depth)
        found = of_value(summary.returns) if summary is not None and summary.returns is not None else None
        if found is None and self.file.switches_grad_off(local):
            return NO_GRAPH_MADE
        return self._computed(found, stmt) if found is not None else self._of_stranger(call, stmt)

    def _of_given(self, value: Val, call: ir.Call, local: ir.Function, stmt: ir.Stmt, depth: int) -> Traced:
        """What a function makes of what it is given, as its caller knows that."""
        names = {token.name for token in value.tokens if isinstance(token, ParamToken)}
        params = local.params[1:] if local.cls is not None else local.params
        given = [
            call.argument(place, param.name) for place, param in enumerate(params) if param.name in names
        ]
        carried = [self.of(one, stmt, depth) for one in given if one is not None]
        return self._computed(joined(carried), stmt) if carried else UNKNOWN

    def _of_method(self, call: ir.Call, func: ir.Attr, stmt: ir.Stmt, depth: int) -> Traced:
        method = func.attr
        if method in NO_GRAPH or method in TO_HOST:
            return Traced(REFUTED, REFUTED, f"`.{method}()` leaves no graph", cut=True)
        if (
            method in TO_DEVICE or method in ("zero_", "fill_", "normal_", "uniform_")
        ) and method not in KEEPS_GRAPH:
            return made_without(f"`.{method}()` makes no graph")
        if self._is_network(func, method):
            given = [self.of(arg, stmt, depth) for arg in call.args]
            if given and all(one.cut for one in given):
                return Traced(
                    PROVEN, OPEN, f"whether `{call.method}` makes a graph of what is detached is not shown"
                )
            return self._of_stranger(call, stmt, network=True)
        if method in KEEPS_GRAPH or method in REDUCTIONS or method in _CARRIERS or method in PAIRS:
            found = self.of(func.base, stmt, depth)
            if method in _OF_TENSORS and found.tensor is OPEN:
                found = replace(found, tensor=PROVEN)
            if method in REDUCTIONS and not call.args:
                found = replace(found, scalar=True)
            if method not in GIVES_ITSELF | _CARRIERS | {"clone"}:
                found = self._computed(found, stmt)
            return found
        if CUTS.search(method):
            return replace(NUMBER, cut=True)
        return self._of_stranger(call, stmt)

    def _is_network(self, func: ir.Attr, method: str) -> bool:
        """Whether a call is one of a module that the class or the function treats as one."""
        if func.path is not None and self.file.treated_as_module(self.function, func.path):
            return True
        info = self.file.class_of(self.function)
        own = isinstance(func.base, ir.Name) and func.base.id == self._own
        return own and info is not None and info.attr(method).kind is Kind.MODULE

    def _of_stranger(self, call: ir.Call, stmt: ir.Stmt, network: bool = False) -> Traced:
        """The result of code that is not seen."""
        mode = self.grad_at(stmt)
        if mode is Grad.DISABLED:
            return NO_GRAPH_MADE  # who switches grad off around a call does so for its tensors
        shown = call.func.path or call.method
        if network:
            sure = mode is Grad.ENABLED
            why = (
                f"`{shown}` is a network, run with grad enabled"
                if sure
                else f"`{shown}` may run with grad off"
            )
            return Traced(PROVEN, PROVEN if sure else OPEN, why)
        if LOSSLIKE.search(call.method):
            return Traced(OPEN, OPEN, f"`{shown}` makes a loss, by its name", scalar=True)
        return Traced(OPEN, OPEN, f"what `{shown}` gives is not seen")
