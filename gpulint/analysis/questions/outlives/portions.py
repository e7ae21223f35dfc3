"""What a loop that piles up tensors is given: so many batches, parts of one thing that is there as a whole, and whether any
of it is on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.reading import innermost, origins
from gpulint.analysis.torch import frameworks

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_CUTTING = ("split", "chunk", "tensor_split")
_COUNTED = ("enumerate", "zip", "tqdm", "list")
_PLACING = ("device", "cuda", "gpu", "accelerat", "fabric")


def is_placed_elsewhere(file: FileAnalysis, function: ir.Function) -> bool:
    """In a file that places nothing anywhere; or in a LightningModule, but in none of the methods that the framework runs
    while the module is on the device."""
    owner = file.class_of(function)
    lightning = owner is not None and owner.is_lightning
    if not lightning:
        return not _speaks_of_devices(file)
    if "cuda" in file.evidence[function].words:
        return False
    return function.name not in frameworks.LIGHTNING_NO_GRAD | frameworks.LIGHTNING_TRAIN


def _speaks_of_devices(file: FileAnalysis) -> bool:
    return any(
        word == "to" or any(name in word.lower() for name in _PLACING)
        for evidence in file.evidence.values()
        for word in evidence.words
    )


def ends_early(loop: ir.For | ir.While) -> bool:
    """`if i >= n: break`, `islice(loader, n)`."""
    if isinstance(loop, ir.For) and any(
        isinstance(part, ir.Call) and part.method == "islice" for part in ir.walk(loop.iterable)
    ):
        return True
    return any(
        isinstance(statement, ir.If)
        and any(isinstance(inner, ir.Jump) and inner.kind == "break" for inner in statement.body)
        and any(isinstance(part, ir.Op) and part.op in ("cmp", "==") for part in ir.walk(statement.test))
        for statement in loop.body
    )


def cuts_parts(function: ir.Function, loop: ir.For | ir.While, leaves: tuple[ir.Expr, ...]) -> bool:
    """`for i in range(0, len(x), n): … net(x[i : i + n])`, `for part in x.split(n)`, with nothing moved to the device: x may be
    there as a whole, and what is made of all its parts is no larger a matter than x is."""
    iterable = loop.iterable if isinstance(loop, ir.For) else None
    while isinstance(iterable, ir.Call) and iterable.method in _COUNTED and iterable.args:
        iterable = iterable.args[0]
    if not isinstance(iterable, ir.Call) or iterable.method not in ("range", "trange", *_CUTTING):
        return False
    if any(call.method in ("to", "cuda") for _, call in ir.calls(loop.body)):
        return False
    return iterable.method in _CUTTING or _is_given_slices(function, loop, leaves)


def _is_given_slices(function: ir.Function, loop: ir.For | ir.While, leaves: tuple[ir.Expr, ...]) -> bool:
    """Whether what is kept is made of a slice as it is, and not of what a tokenizer or a reader makes of one."""
    slices = {
        target.path
        for statement in ir.statements(loop.body)
        if isinstance(statement, ir.Assign) and _is_slice(statement.value)
        for target in targets(statement)
    }
    return any(
        _is_slice(argument) or (argument.path is not None and argument.path in slices)
        for leaf in leaves
        for made in (leaf, *origins(function, innermost(leaf)))
        for part in ir.walk(made)
        if isinstance(part, ir.Call)
        for argument in (*part.args, *(value for _, value in part.keywords))
    )


def _is_slice(expr: ir.Expr | None) -> bool:
    return isinstance(expr, ir.Sub) and any(isinstance(part, ir.Slice) for part in ir.walk(expr.index))
