"""Values that the code proves to be on the CPU: what holds them costs no memory of a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.questions.grad.no_graph import becomes_array_undetached, elements_become_arrays

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts, Hold
    from gpulint.analysis.file.program import FileAnalysis

# What makes a tensor in host memory, where no device is named.
_MAKING = frozenset(
    "torch.from_numpy torch.tensor torch.Tensor torch.FloatTensor torch.LongTensor torch.DoubleTensor torch.IntTensor "
    "torch.BoolTensor".split()
)

# What leaves a tensor where it is.
_STAYING = frozenset(
    "float long double int bool half type view reshape unsqueeze squeeze flatten transpose permute t contiguous clone "
    "detach requires_grad_ mean sum".split()
)

# Words of code that puts anything on a GPU, or that has somebody else do so.
PLACING = frozenset(
    "cuda device to gpu prepare DataParallel DistributedDataParallel set_default_device set_default_tensor_type "
    "init_inference initialize Accelerator Fabric to_device device_put".split()
)


def is_on_host(file: FileAnalysis, facts: FunctionFacts, hold: Hold) -> bool:
    """Whether what is held was computed on the CPU: from a batch made there, or it becomes an array as it is."""
    forwards = [forward for forward in facts.forwards if forward.site in hold.value.sites]
    names = {leaf.path for leaf in hold.leaves} | {hold.place.holder}
    for forward in forwards:
        names |= {target.path for target in targets(forward.stmt)}
    if _becomes_array(facts.function, {name for name in names if name is not None}):
        return True
    if hold.place.container and hold.place.holder_kind == "variable":
        if elements_become_arrays(facts.function, {hold.place.holder}):
            return True
        if becomes_array_undetached(facts.function, hold.place.holder):
            return True  # no graph at all, wherever it is
    if not forwards or _places(file):
        return False
    made = _made_on_host(file, facts.function)
    return all(any(_root(arg) in made for arg in forward.call.args) for forward in forwards)


def _places(file: FileAnalysis) -> bool:
    return any(evidence.words & PLACING for evidence in file.evidence.values())


def _made_on_host(file: FileAnalysis, function: ir.Function) -> set[str]:
    """The names that are only ever bound to tensors made from arrays and lists."""
    made: set[str] = set()
    other = {param.name for param in function.params}
    for statement in ir.statements(function.body):
        value = statement.value if isinstance(statement, ir.Assign) else None
        for target in targets(statement):
            if target.path is not None:
                plain = value is not None and isinstance(target, ir.Name) and _makes(file, value, made)
                (made if plain else other).add(target.path)
    return made - other


def _makes(file: FileAnalysis, value: ir.Expr, made: set[str]) -> bool:
    while isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and value.method in _STAYING:
        value = value.func.base
    if isinstance(value, ir.Call):
        return file.names.qualify(value.func.path or "") in _MAKING and value.keyword("device") is None
    return value.path in made


def _root(expr: ir.Expr) -> str | None:
    while isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in _STAYING:
        expr = expr.func.base
    return expr.path


def _becomes_array(function: ir.Function, names: Iterable[str]) -> bool:
    """`loss.detach().numpy()` without a `.cpu()` on the way: torch refuses that for what is on a GPU."""
    names = set(names)
    found: set[str] = set()
    for _, call in ir.calls(function.body):
        if call.method == "numpy" and isinstance(call.func, ir.Attr) and not call.args:
            root = _root(_without_data(call.func.base))
            if root in names and root is not None:
                found.add(root)
        elif call.method in ("cpu", "to") and isinstance(call.func, ir.Attr):
            names.discard(_root(_without_data(call.func.base)) or "")
    found &= names
    return bool(found) and not any(_is_moved(statement, found) for statement in ir.statements(function.body))


def _without_data(expr: ir.Expr) -> ir.Expr:
    return expr.base if isinstance(expr, ir.Attr) and expr.attr == "data" else expr


def _is_moved(statement: ir.Stmt, names: set[str]) -> bool:
    """`loss = loss.cpu()`: the name stands for a copy on the CPU as well."""
    if not isinstance(statement, ir.Assign) or statement.value is None:
        return False
    if not any(target.path in names for target in targets(statement)):
        return False
    return any(
        isinstance(part, ir.Call) and part.method in ("cpu", "to", "pin_memory", "numpy")
        for part in ir.walk(statement.value)
    )
