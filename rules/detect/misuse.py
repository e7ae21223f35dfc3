"""Calls that do not do what they look like: grad modes entered by nothing, graphs kept by `backward`, gradients kept by
`zero_grad`. Read off the statements alone; no value is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_periodic
from gpulint.analysis.torch.backward import runs_backward

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.analysis.file.program import FileAnalysis

# A captured graph replays into the same gradient tensors: there they must stay where they are.
_CAPTURING = re.compile(r"cuda_?graph|graphed|capture_begin", re.IGNORECASE)


@dataclass(slots=True)
class CreateGraph:
    """`backward(create_graph=True)`, where nothing lets go of the gradients before the iteration ends."""

    function: ir.Function
    call: ir.Call
    again: bool  # a later backward of the same iteration can free the graph
    in_loop: bool


@dataclass(slots=True)
class KeptGradients:
    """`zero_grad(set_to_none=False)`."""

    call: ir.Call

    @property
    def argument(self) -> cst.CSTNode | None:
        """The argument that says so."""
        for argument in self.call.node.args:
            if argument.keyword is None or argument.keyword.value == "set_to_none":
                return argument  # type: ignore[no-any-return]
        return None


# --- graphs of gradients -------------------------------------------------------------------------------------------


def create_graphs(file: FileAnalysis) -> list[CreateGraph]:
    """Backwards that make gradients with a graph, which then stay on the parameters."""
    functions = file.function_facts
    forwards = [forward for facts in functions for forward in facts.forwards]
    found: list[CreateGraph] = []
    for function in file.module.functions:
        if not any(runs_backward(name) for name in file.evidence[function].called):
            continue
        for number, region in enumerate(_regions(function.body)):
            for position, statement in enumerate(region):
                calls = [call for call in _own_calls(statement) if _creates_graph(call)]
                later = region[position + 1 :] if calls else []
                starts_clean = calls and _starts_clean(region[:position], {f.stmt for f in forwards})
                if calls and not starts_clean and not any(_lets_go(item) for item in later):
                    again = any(runs_backward(call.method) for _, call in ir.calls(later))
                    found += [CreateGraph(function, call, again, number > 0) for call in calls]
    return found


def _starts_clean(before: list[ir.Stmt], forwards: set[ir.Stmt]) -> bool:
    """Whether the iteration resets the gradients before its first forward: no two graphs are ever alive."""
    for statement in before:
        if statement in forwards:
            return False
        if _lets_go(statement):
            return any(later in forwards for later in before)
    return False


def _regions(block: list[ir.Stmt]) -> Iterator[list[ir.Stmt]]:
    """The statements of a function by innermost loop, in source order: what runs in one iteration."""
    own: list[ir.Stmt] = []
    stack = list(reversed(block))
    loops: list[list[ir.Stmt]] = []
    while stack:
        statement = stack.pop()
        own.append(statement)
        if isinstance(statement, (ir.For, ir.While)):
            loops.append(statement.body)
            stack.extend(reversed(statement.orelse))
        else:
            for inner in reversed(statement.blocks()):
                stack.extend(reversed(inner))
    yield own
    for body in loops:
        yield from _regions(body)


def _own_calls(statement: ir.Stmt) -> Iterator[ir.Call]:
    for expr in ir.own_parts(statement):
        if isinstance(expr, ir.Call):
            yield expr


def _creates_graph(call: ir.Call) -> bool:
    value = call.keyword("create_graph")
    return runs_backward(call.method) and isinstance(value, ir.Const) and value.value is True


def _lets_go(statement: ir.Stmt) -> bool:
    """`optimizer.zero_grad()`, `p.grad = None`, `del p.grad`, also in a loop over the parameters."""
    for inner in ir.statements([statement]):
        if isinstance(inner, ir.Assign) and isinstance(inner.value, ir.Const) and inner.value.value is None:
            if any(isinstance(target, ir.Attr) and target.attr == "grad" for target in inner.targets):
                return True
        if isinstance(inner, ir.Delete):
            if any(isinstance(target, ir.Attr) and target.attr == "grad" for target in inner.targets):
                return True
        if any(call.method == "zero_grad" and not _keeps(call) for call in _own_calls(inner)):
            return True
    return False


# --- zeroed gradients ----------------------------------------------------------------------------------------------


def kept_gradients(file: FileAnalysis) -> list[KeptGradients]:
    """Calls that fill gradients with zeros where letting them go would do."""
    if not any("zero_grad" in evidence.called for evidence in file.evidence.values()):
        return []
    if any(_CAPTURING.search(word) for evidence in file.evidence.values() for word in evidence.words):
        return []
    if any("zero_grad" in cls.methods for cls in file.module.classes.values()):
        return []
    found: list[KeptGradients] = []
    for function in file.module.functions:
        if "zero_grad" in file.evidence[function].called and not _adds_by_hand(function):
            rare = _rare(function.body, False)
            for statement, call in ir.calls(function.body):
                if call.method == "zero_grad" and isinstance(call.func, ir.Attr) and _keeps(call):
                    if id(statement) not in rare:
                        found.append(KeptGradients(call))
    return found


def _adds_by_hand(function: ir.Function) -> bool:
    """`master.grad.add_(p.grad.float())`, `p.grad += …`: who writes into gradients wants them to be there."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.AugAssign) and _is_gradient(statement.target):
            return True
        for call in _own_calls(statement):
            if call.method in ("add_", "copy_", "sub_") and isinstance(call.func, ir.Attr):
                if _is_gradient(call.func.base):
                    return True
    return False


def _is_gradient(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Attr) and expr.attr == "data":
        expr = expr.base
    return isinstance(expr, ir.Attr) and expr.attr == "grad"


def _rare(block: list[ir.Stmt], guarded: bool) -> set[int]:
    """The statements under an `if`, every k-th step aside: gradients found to be invalid are meant to become zeros."""
    found: set[int] = set()
    for statement in block:
        if guarded:
            found.add(id(statement))
        inside = guarded or (isinstance(statement, ir.If) and not is_periodic(statement.test))
        for inner in statement.blocks():
            found |= _rare(inner, inside)
    return found


def _keeps(call: ir.Call) -> bool:
    value = call.argument(0, "set_to_none")
    return isinstance(value, ir.Const) and value.value is False and len(call.args) + len(call.keywords) == 1
