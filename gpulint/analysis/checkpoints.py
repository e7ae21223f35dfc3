"""Training checkpoints that `torch.load` brings back to the GPU they were saved from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis import ir
from gpulint.analysis.lookup import names_cuda, qualified, with_words

if TYPE_CHECKING:
    from gpulint.analysis.program import FileAnalysis

# Keys of a checkpoint whose values are plain: taking them out gives nothing of the GPU away.
_PLAIN = re.compile(
    r"(?i)epoch|step|iter|best|acc|config|args|param|version|name|arch|hyper|seed|score|metric|history|lr$|loss"
)
_NUMBERS_ONLY = re.compile(r"(?i)sched|scaler|sampler|loader|amp$|meter|transform$|(?:^|[._])lr")


@dataclass(slots=True)
class Load:
    """`torch.load` of a training checkpoint onto the GPU. `location` is the given `map_location`, None where none is.

    `plain_uses` says that what is loaded only goes into `load_state_dict`, or is a number; `held`, that a name keeps it.
    """

    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    location: ir.Expr | None
    plain_uses: bool
    held: bool = True


def loads(file: FileAnalysis) -> list[Load]:
    """The loads, of a file that uses CUDA, that hand what they load to a model or an optimizer."""
    found: list[Load] = []
    for function in with_words(file, frozenset({"load"})):
        for statement, call in ir.calls(function.body):
            if call.method == "load" and qualified(file, function, call.func.path) == "torch.load":
                load = _load(file, function, statement, call)
                if load is not None:
                    found.append(load)
    return found


def _load(file: FileAnalysis, function: ir.Function, statement: ir.Stmt, call: ir.Call) -> Load | None:
    if not call.args or any(name is None for name, _ in call.keywords) or len(call.args) > 2:
        return None
    location = call.argument(1, "map_location")
    absent = location is None or (isinstance(location, ir.Const) and location.value is None)
    if absent and not _uses_cuda(file):
        return None
    if not absent and not names_cuda(file, function, location) and not _is_cuda_attribute(file, location):
        return None
    if _is_host_file(call.args[0]):
        return None
    parents = parents_of(statement)
    if _goes_into_state(call, parents):
        return Load(function, statement, call, location, True, held=False)
    path = _name_of(statement, call)
    if path is None or "quantiz" in path:  # quantized weights are the CPU's
        return None
    uses = list(_uses(function, _derived(function, path), statement))
    if not any(_is_restored(use, chain) for use, chain in uses):
        return None
    return Load(function, statement, call, location, all(_is_plain(use, chain) for use, chain in uses))


def _is_cuda_attribute(file: FileAnalysis, location: ir.Expr | None) -> bool:
    """`self.device`, where each method that sets it sets it to a CUDA device, or to a parameter that is one by default."""
    if not isinstance(location, ir.Attr) or location.path is None:
        return False
    values = [
        (function, statement.value)
        for function, evidence in file.evidence.items()
        if location.path in evidence.stored
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign)
        and any(target.path == location.path for target in statement.targets)
    ]
    return bool(values) and all(
        names_cuda(file, function, value) or _is_cuda_by_default(file, function, value)
        for function, value in values
    )


def _is_cuda_by_default(file: FileAnalysis, function: ir.Function, value: ir.Expr | None) -> bool:
    """`device` or `torch.device(device)` of a parameter `device="cuda"`."""
    if isinstance(value, ir.Call) and qualified(file, function, value.func.path) == "torch.device":
        value = value.args[0] if len(value.args) == 1 else None
    if not isinstance(value, ir.Name):
        return False
    name = value.id
    return any(param.name == name and names_cuda(file, function, param.default) for param in function.params)


def _uses_cuda(file: FileAnalysis) -> bool:
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    strings = {text for evidence in file.evidence.values() for text in evidence.strings}
    return "cuda" in words or any(text.startswith("cuda") for text in strings)


def _is_host_file(source: ir.Expr) -> bool:
    """A file that was not written by a training of this program: it is downloaded."""
    return any(isinstance(part, ir.Call) and "download" in part.method for part in ir.walk(source))


Chain = tuple[ir.Expr, ...]


def parents_of(statement: ir.Stmt) -> dict[int, ir.Expr]:
    """For each expression of a statement the one around it, by identity."""
    found: dict[int, ir.Expr] = {}
    for root in statement.expressions():
        for expr in ir.walk(root):
            for child in expr.children():
                found[id(child)] = expr
    return found


def chain_of(expr: ir.Expr, parents: dict[int, ir.Expr]) -> Chain:
    """The expressions around an expression, innermost first."""
    found: list[ir.Expr] = []
    current = parents.get(id(expr))
    while current is not None:
        found.append(current)
        current = parents.get(id(current))
    return tuple(found)


def _goes_into_state(expr: ir.Expr, parents: dict[int, ir.Expr]) -> bool:
    """`model.load_state_dict(torch.load(path)["model"])`, `load_state_dict(torch.load(path).state_dict())`."""
    previous = expr
    for around in chain_of(expr, parents):
        if isinstance(around, ir.Call) and around.method == "load_state_dict":
            return previous in around.args and _has_tensors(around)
        taken = isinstance(around, ir.Sub) and around.base is previous
        stated = isinstance(around, ir.Attr) and around.attr == "state_dict"
        called = (
            isinstance(around, ir.Call) and around.func is previous and around.method in ("state_dict", "get")
        )
        fetched = isinstance(around, ir.Attr) and around.attr == "get"
        if not (taken or stated or called or fetched):
            return False
        previous = around
    return False


def _name_of(statement: ir.Stmt, call: ir.Call) -> str | None:
    """The plain name that what is loaded gets: `ckpt = torch.load(…)`."""
    if isinstance(statement, ir.Assign) and statement.value is call and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ir.Name) else None
    return None


def _derived(function: ir.Function, name: str) -> frozenset[str]:
    """The name and those that get an item of it: `weights = ckpt["model"]`."""
    names = {name}
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and _item_owner(statement.value) in names:
            names |= {target.id for target in statement.targets if isinstance(target, ir.Name)}
    return frozenset(names)


def _item_owner(value: ir.Expr | None) -> str | None:
    """`ckpt` of `ckpt["model"]`, `ckpt.get("model")` and `ckpt.pop("model")`."""
    if isinstance(value, ir.Sub):
        return value.base.path
    if isinstance(value, ir.Call) and value.method in ("get", "pop") and isinstance(value.func, ir.Attr):
        return value.func.base.path
    return None


def _uses(function: ir.Function, names: frozenset[str], binding: ir.Stmt) -> Iterator[tuple[ir.Expr, Chain]]:
    """Every read of one of the names after the binding, with the expressions around it."""
    after = False
    for statement in ir.statements(function.body):
        if statement is binding:
            after = True
            continue
        if not after:
            continue
        parents: dict[int, ir.Expr] | None = None
        for root in statement.expressions():
            for expr in ir.walk(root):
                if isinstance(expr, ir.Name) and expr.id in names:
                    if isinstance(statement, ir.Assign) and expr in statement.targets:
                        continue
                    if parents is None:
                        parents = parents_of(statement)
                    yield expr, chain_of(expr, parents)


def _is_restored(use: ir.Expr, chain: Chain) -> bool:
    """Whether the loaded thing, or one of its items, is handed to `load_state_dict`."""
    previous = use
    for around in chain:
        if isinstance(around, ir.Call) and around.method == "load_state_dict":
            return around.func is not previous and _has_tensors(around)
        previous = around
    return False


def _has_tensors(restoring: ir.Call) -> bool:
    """Whether what is restored holds tensors on the GPU: not a scheduler, a scaler or a sampler."""
    return isinstance(restoring.func, ir.Attr) and not _NUMBERS_ONLY.search(restoring.func.base.path or "")


def _is_plain(use: ir.Expr, chain: Chain) -> bool:
    if any(isinstance(around, ir.Call) and around.method == "load_state_dict" for around in chain):
        return True
    around = chain[0] if chain else None
    if isinstance(around, ir.Sub) and around.base is use and isinstance(around.index, ir.Const):
        return isinstance(around.index.value, str) and bool(_PLAIN.search(around.index.value))
    return isinstance(around, ir.Op) and around.op in ("in", "not in", "is", "is not")
