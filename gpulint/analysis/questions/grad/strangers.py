"""Calls whose code is not seen and of which nothing is known: under no_grad they may fail, as a registration does that
optimizes by itself.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file import lookup
from gpulint.analysis.file.classes import is_abstract
from gpulint.analysis.file.evidence import LOSSY
from gpulint.analysis.questions.backward.under_calls import BackwardUnderCalls
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.backward import WANTS_GRAD, differentiates, is_known_torch
from gpulint.analysis.torch.names import (
    HOST_ATTRS,
    KEEPS_GRAPH,
    PAIRS,
    REDUCTIONS,
    SINK_METHODS,
    TO_DEVICE,
    TO_HOST,
)
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts, Hold
    from gpulint.analysis.file.program import FileAnalysis

# Libraries that differentiate nothing by themselves.
_HARMLESS_LIBRARIES = (
    frameworks.HOST_LIBRARIES
    | sys.stdlib_module_names
    | frozenset(
        "torchvision torchaudio torchmetrics tqdm einops datasets imageio soundfile librosa rich".split()
    )
)
_DIFFERENTIATING = ("torch.autograd", "torch.enable_grad", "torch.set_grad_enabled", "torch.optim")
_BUILTINS = frozenset(dir(builtins)) - {"exec", "eval", "__import__"}
# Methods of containers, strings, files, modules, loaders and meters.
_PLAIN_METHODS = frozenset(
    "append extend insert pop popleft items keys values get setdefault update copy remove clear sort join split rsplit strip "
    "replace startswith endswith lower upper encode decode index count read readline readlines close flush eval train "
    "parameters named_parameters modules named_modules children buffers state_dict load_state_dict zero_grad reset "
    "compute avg mean_ fill_ zero_ masked_fill_ batch_decode convert_ids_to_tokens convert_tokens_to_string save "
    "imshow plot show savefig astype all_gather gather_for_metrics synchronize empty_cache exists mkdir".split()
)
_HARMLESS_METHODS = (
    TO_HOST | TO_DEVICE | KEEPS_GRAPH | PAIRS | REDUCTIONS | SINK_METHODS | HOST_ATTRS | _PLAIN_METHODS
) - {"requires_grad_", "retain_grad", "solve"}
_WANTS_GRAD = WANTS_GRAD | frozenset(
    "backward autograd requires_grad set_grad_enabled grad optim optimizer manual_backward closure".split()
)
_DEPTH = 4


class Strangers:
    """Looks for unseen code in the functions of one file, and of those that they call."""

    def __init__(self, functions: Sequence[FunctionFacts]) -> None:
        self._known: dict[ir.Function, bool] = {}
        self._backward = BackwardUnderCalls()
        self._forwards = {
            id(forward.call): forward
            for facts in functions
            for forward in facts.forwards
            if forward.site is not None
        }

    def among(self, function: ir.Function, block: list[ir.Stmt], depth: int = _DEPTH) -> str | None:
        """What the statements call that may want grad for all that is known, by name; None where all is harmless."""
        for statement in ir.statements(block):
            if isinstance(statement, ir.FunctionDef) and self._is_strange(statement.function, depth):
                return statement.function.name
            for part in ir.own_parts(statement):
                if isinstance(part, ir.Call) and not self._is_harmless(function, part, depth):
                    return part.func.path or part.method
                if isinstance(part, ir.LambdaExpr) and self._is_strange(part.function, depth):
                    return "lambda"
        return None

    def given(self, hold: Hold) -> str | None:
        """The unseen function, by the name it is called by, that gets what is held or what holds it before the round ends."""
        names = {leaf.path for leaf in hold.leaves} | {hold.place.holder}
        names |= {part.path for leaf in hold.leaves for part in ir.walk(leaf) if isinstance(part, ir.Name)}
        body = hold.function.body
        for _, call in ir.calls(body):
            arguments = (*call.args, *(value for _, value in call.keywords))
            takes = any(part.path in names for arg in arguments for part in ir.walk(arg) if part.path)
            if (
                takes
                and call.origin is not hold.at.origin
                and not self._is_harmless(hold.function, call, _DEPTH)
            ):
                return call.func.path or call.method
        return None

    def _is_strange(self, function: ir.Function, depth: int) -> bool:
        """Whether a function of the project is beyond judging, or wants grad."""
        if depth == 0:
            return True
        if function not in self._known:
            self._known[function] = False  # called again within itself: it adds nothing
            evidence = function.home.evidence[function]
            wants = bool(evidence.words & _WANTS_GRAD)
            self._known[function] = wants or self.among(function, function.body, depth - 1) is not None
        return self._known[function]

    def _is_harmless(self, function: ir.Function, call: ir.Call, depth: int) -> bool:
        if (forward := self._forwards.get(id(call))) is not None:
            return self._backward.of_forward(forward) is None
        if self._backward.of_call(function, call) is not None:
            return False
        home: FileAnalysis = function.home
        path = call.func.path
        if path is not None and path in home.evidence[function].modules:
            return True
        full = lookup.qualified(home, function, path)
        if full is not None and not full.startswith("."):
            root = full.partition(".")[0]
            if root == "torch":
                known = is_known_torch(full) and not full.startswith(_DIFFERENTIATING)
                return known and not differentiates(full, call.method)
            if root in _HARMLESS_LIBRARIES:
                return True
        callee = lookup.called(home, function, call)
        if callee is not None:
            instead = tuple(lookup.put_in_its_place(callee))
            if callee.cls is not None and not instead and is_abstract(callee):
                return False  # whoever derives from the class says what it does
            return not any(self._is_strange(one, depth) for one in (callee, *instead))
        if full is None and LOSSY.search(call.method):
            return True  # it computes with what the forward gives
        if isinstance(call.func, ir.Name):
            return self._is_harmless_name(function, call.func.id, full, depth)
        if full is not None:
            return self._is_harmless_value(home, full, depth)
        return isinstance(call.func, ir.Attr) and call.method in _HARMLESS_METHODS

    def _is_harmless_name(self, function: ir.Function, name: str, full: str | None, depth: int) -> bool:
        home: FileAnalysis = function.home
        if full is not None:
            return self._is_harmless_value(home, full, depth)
        bound = name in home.evidence[function].assigned or any(p.name == name for p in function.params)
        if bound:
            return False
        info = home.classes.get(name)
        if info is not None:
            return self._is_harmless_class(info.method("__init__"), depth)
        return name in _BUILTINS and name not in home.evidence[home.module.body].assigned

    def _is_harmless_value(self, home: FileAnalysis, full: str, depth: int) -> bool:
        """Whether what is imported from the project is seen to be harmless."""
        value = home.imported_value(full)
        if value is None:
            return False
        if value.kind is Kind.FUNCTION and isinstance(value.ref, ir.Function):
            return not self._is_strange(value.ref, depth)
        return value.kind is Kind.CLASS and self._is_harmless_class(value.ref.method("__init__"), depth)

    def _is_harmless_class(self, constructor: ir.Function | None, depth: int) -> bool:
        return constructor is None or not self._is_strange(constructor, depth)
